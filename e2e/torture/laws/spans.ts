// The reference model of AMQP's bindings under uncertainty: when a queue, an exchange or a binding CERTAINLY stood, and
// when it POSSIBLY stood, from operations of which only the moments of asking and of being answered are known.
// Used by the laws. Separate because every law leans on these two, and they are pure.
import type { History, Operation } from "../history.ts";

/** From and until, both included. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

/** How long an operation whose connection was lost may still take effect: a broker looks for its leader, a bus restarts. */
export const LATE = 60_000;

/** What an operation makes, or takes away: its effect lies between `sent` and `end`. */
interface Change {
  readonly sent: number;
  readonly end: number;
  readonly sure: boolean;
}

/** The implicit binding to the default exchange: as the queue. */
export const IMPLICIT = "";

/** Every span in which something stood, by its name. */
export class Spans {
  readonly #history: History;
  readonly #certain: Map<string, readonly Span[]> = new Map<string, readonly Span[]>();
  readonly #possible: Map<string, readonly Span[]> = new Map<string, readonly Span[]>();
  /** Queue → the (exchange, key) pairs that anybody ever asked to bind. */
  readonly #asked: Map<string, Map<string, { readonly exchange: string; readonly key: string }>> = new Map();

  constructor(history: History) {
    this.#history = history;
    for (const { kind, queue, exchange, key } of history.operations) {
      if (kind !== "bind" && kind !== "declare") continue;
      const of = this.#asked.get(queue) ?? new Map<string, { readonly exchange: string; readonly key: string }>();
      this.#asked.set(queue, of);
      if (kind === "bind") of.set(`${exchange} ${key}`, { exchange, key });
    }
  }

  /** Every queue that anybody ever declared or bound. */
  get queues(): Iterable<string> {
    return this.#asked.keys();
  }

  /** Does the queue certainly get what was stored at some moment between these two? By ONE binding that stood throughout. */
  certainly(queue: string, exchange: string, routingKey: string, from: number, until: number): boolean {
    return this.#matching(queue, exchange, routingKey).some((key) =>
      this.#of(this.#certain, queue, exchange, key, certainSpans).some(
        (span) => span.from <= from && until <= span.until,
      ),
    );
  }

  /** Could the queue get what was stored at some moment between these two? */
  possibly(queue: string, exchange: string, routingKey: string, from: number, until: number): boolean {
    return this.#matching(queue, exchange, routingKey).some((key) =>
      this.#of(this.#possible, queue, exchange, key, possibleSpans).some(
        (span) => span.from <= until && from <= span.until,
      ),
    );
  }

  /** Whether the queue certainly stood all the time. */
  queueStood(queue: string, from: number, until: number): boolean {
    return this.#of(this.#certain, queue, IMPLICIT, queue, certainSpans).some(
      (span) => span.from <= from && until <= span.until,
    );
  }

  /** Whether the exchange certainly stood all the time. */
  exchangeStood(exchange: string, from: number, until: number): boolean {
    const name = `x ${exchange}`;
    let spans = this.#certain.get(name);
    if (spans === undefined) {
      const of = this.#history.operations.filter((each) => each.exchange === exchange);
      const makes = of.filter(({ kind }) => kind === "declare-exchange");
      spans = certainSpans(changes(makes), changes(of.filter(({ kind }) => kind === "delete-exchange")));
      this.#certain.set(name, spans);
    }
    return spans.some((span) => span.from <= from && until <= span.until);
  }

  /** The binding keys of the queue and the exchange that match. */
  #matching(queue: string, exchange: string, routingKey: string): string[] {
    if (exchange === IMPLICIT) return queue === routingKey ? [queue] : [];
    const kind = this.#history.exchanges[exchange];
    const keys: string[] = [];
    for (const pair of this.#asked.get(queue)?.values() ?? []) {
      if (pair.exchange === exchange && keyMatches(kind, pair.key, routingKey)) keys.push(pair.key);
    }
    return keys;
  }

  #of(
    cache: Map<string, readonly Span[]>,
    queue: string,
    exchange: string,
    key: string,
    compute: (makes: readonly Change[], takes: readonly Change[]) => readonly Span[],
  ): readonly Span[] {
    const name = `b ${queue} ${exchange} ${key}`;
    let spans = cache.get(name);
    if (spans === undefined) {
      const { operations } = this.#history;
      const isImplicit = exchange === IMPLICIT;
      const makes = operations.filter((each) =>
        isImplicit ? each.kind === "declare" && each.queue === queue : each.kind === "bind" && isBinding(each),
      );
      const takes = operations.filter(
        (each) =>
          (each.kind === "delete" && each.queue === queue) ||
          (!isImplicit && each.kind === "delete-exchange" && each.exchange === exchange) ||
          (each.kind === "unbind" && isBinding(each)),
      );
      spans = compute(changes(makes), changes(takes));
      cache.set(name, spans);
    }
    return spans;

    function isBinding(each: Operation): boolean {
      return each.queue === queue && each.exchange === exchange && each.key === key;
    }
  }
}

/** Refused ones change nothing. */
function changes(operations: readonly Operation[]): readonly Change[] {
  return operations
    .filter(({ outcome }) => outcome !== "refused")
    .map(({ sent, answered, outcome }) => ({ sent, end: answered ?? sent + LATE, sure: outcome === "ok" }));
}

/** Made for sure, from the answer until somebody asks to take it away; nobody may have taken it away around the making. */
function certainSpans(makes: readonly Change[], takes: readonly Change[]): readonly Span[] {
  const spans: Span[] = [];
  for (const make of makes) {
    if (!make.sure) continue;
    if (takes.some((take) => take.end >= make.sent && take.sent <= make.end)) continue;
    const later = takes.filter((take) => take.sent > make.end).map((take) => take.sent);
    spans.push({ from: make.end, until: Math.min(Number.POSITIVE_INFINITY, ...later) });
  }
  return spans;
}

/** From the asking until somebody who asked after the making's end was told that it is gone. */
function possibleSpans(makes: readonly Change[], takes: readonly Change[]): readonly Span[] {
  return makes.map((make) => {
    const gone = takes.filter((take) => take.sure && take.sent >= make.end).map((take) => take.end);
    return { from: make.sent, until: Math.min(Number.POSITIVE_INFINITY, ...gone) };
  });
}

/** AMQP 3.1.3: the kinds of exchanges. A topic's `*` is one word, its `#` any number of them. */
export function keyMatches(kind: "direct" | "fanout" | "topic" | undefined, bound: string, published: string): boolean {
  if (kind === "fanout") return true;
  if (kind !== "topic") return bound === published;
  return wordsMatch(bound.split("."), published.split("."));
}

function wordsMatch(bound: readonly string[], published: readonly string[]): boolean {
  const [first, ...rest] = bound;
  if (first === undefined) return published.length === 0;
  if (first === "#") {
    for (let skip = 0; skip <= published.length; skip++) if (wordsMatch(rest, published.slice(skip))) return true;
    return false;
  }
  if (published.length === 0 || (first !== "*" && first !== published[0])) return false;
  return wordsMatch(rest, published.slice(1));
}
