/**
 * One queue's bindings, compiled: which part of the log, on which subject, is in the queue.
 *
 * Used by: mirror, which keeps one per queue name and feeds it the records; through it the broker asks about every
 * single delivery, so that the usual answer is one look into a cache and allocates nothing. Separate from `routes`,
 * which asks across queues and only about what is bound now; here closed intervals count as well.
 */
import { antichain, FilterIndex, implicitFilter, isFault, toFilters } from "@amqp/translator";
import type { Binding, Interval, Queue } from "./entities.ts";

/** Sequences above `from`, up to and including `until`. */
interface Span {
  readonly from: number;
  readonly until: number;
}

/** An interval on one filter. */
interface Indexed extends Span {
  /** Its end is not known yet: it is no less than `until`. */
  readonly closing: boolean;
}

/** What is known of a subject. */
interface Known {
  readonly spans: readonly Span[];
  /** Above it, what no span holds may come to be held: the least `until` of what is closing. */
  readonly undecidedAbove: number;
}

/** How many subjects a queue remembers; beyond that it starts afresh (keys that never repeat must not eat memory). */
const CACHED_SUBJECTS = 1024;

/** The filters of one interval; none where its key has no translation (the broker refused such a binding). */
export function filtersOf(binding: Binding, interval: Interval, root: string): readonly string[] {
  const filters = toFilters(interval.kind, binding.exchange, binding.key, root);
  return isFault(filters) ? [] : filters;
}

/** The compiled bindings of one queue name. */
export class Intervals {
  readonly #root: string;
  readonly #implicit: string;
  /** Bucket key → record: every binding of this queue name, also those of an earlier life. */
  readonly #bindings = new Map<string, Binding>();
  /** Every interval of the present life under its filters. */
  #index = new FilterIndex<Indexed>();
  readonly #indexed = new Map<string, readonly (readonly [filter: string, span: Indexed])[]>();
  readonly #cache = new Map<string, Known>();
  #life: Queue | undefined;
  #filters: string[] | undefined;
  #list: readonly Binding[] | undefined;

  constructor(queue: string, root: string) {
    this.#root = root;
    this.#implicit = implicitFilter(queue, root);
  }

  /** Whether there is neither a queue nor a binding of this name. */
  get empty(): boolean {
    return this.#life === undefined && this.#bindings.size === 0;
  }

  get bindings(): readonly Binding[] {
    this.#list ??= [...this.#bindings.values()];
    return this.#list;
  }

  /** The queue's record changed. Another life voids the intervals of the one before. */
  setQueue(queue: Queue | undefined): void {
    const before = this.#life;
    this.#life = queue;
    if (before?.from !== queue?.from) this.#cache.clear();
    if (before?.id === queue?.id) return;
    this.#index = new FilterIndex<Indexed>();
    this.#indexed.clear();
    this.#forget();
    for (const [key, binding] of this.#bindings) this.#compile(key, binding);
  }

  /** A binding's record changed, or is gone. */
  setBinding(key: string, binding: Binding | undefined): void {
    for (const [filter, span] of this.#indexed.get(key) ?? []) this.#index.remove(filter, span);
    this.#indexed.delete(key);
    this.#list = undefined;
    this.#forget();
    if (binding === undefined) {
      this.#bindings.delete(key);
    } else {
      this.#bindings.set(key, binding);
      this.#compile(key, binding);
    }
  }

  /** Whether the message stored at this sequence on this subject was ever put in the queue. */
  holds(subject: string, sequence: number): boolean {
    const { spans } = this.#cache.get(subject) ?? this.#look(subject);
    for (let i = 0; i < spans.length; i++) {
      const span = spans[i];
      if (span !== undefined && sequence > span.from && sequence <= span.until) return true;
    }
    return false;
  }

  /** Whether it is not known yet if the queue holds this message: a binding that matches it is being undone. */
  isUndecided(subject: string, sequence: number): boolean {
    const { undecidedAbove } = this.#cache.get(subject) ?? this.#look(subject);
    return sequence > undecidedAbove && !this.holds(subject, sequence);
  }

  /** The filters that the queue's consumer must have: an antichain, never empty. */
  filters(): string[] {
    this.#filters ??= antichain(this.#all());
    return [...this.#filters];
  }

  *#all(): Iterable<string> {
    yield this.#implicit;
    for (const pairs of this.#indexed.values()) for (const [filter] of pairs) yield filter;
  }

  #compile(key: string, binding: Binding): void {
    const id = this.#life?.id;
    const pairs: (readonly [string, Indexed])[] = [];
    for (const interval of binding.intervals) {
      if (interval.queueId !== id) continue;
      const { from, until = Number.POSITIVE_INFINITY, closing = false } = interval;
      const span: Indexed = { from, until, closing };
      for (const filter of filtersOf(binding, interval, this.#root)) {
        this.#index.add(filter, span);
        pairs.push([filter, span]);
      }
    }
    if (pairs.length > 0) this.#indexed.set(key, pairs);
  }

  #forget(): void {
    this.#cache.clear();
    this.#filters = undefined;
  }

  #look(subject: string): Known {
    if (this.#cache.size >= CACHED_SUBJECTS) this.#cache.clear();
    const found = this.#index.collect(subject, new Set<Indexed>());
    let undecidedAbove = Number.POSITIVE_INFINITY;
    for (const { until, closing } of found) if (closing) undecidedAbove = Math.min(undecidedAbove, until);
    // Derived, never stored (HIP §2); its beginning stands in the queue's record.
    if (this.#life !== undefined && subject === this.#implicit) {
      found.add({ from: this.#life.from, until: Number.POSITIVE_INFINITY, closing: false });
    }
    const known: Known = { spans: merged([...found]), undecidedAbove };
    this.#cache.set(subject, known);
    return known;
  }
}

/** The same sequences in the fewest spans: many overlapping bindings cost a delivery no more than one. */
function merged(spans: Span[]): readonly Span[] {
  spans.sort((a, b) => a.from - b.from);
  const result: Span[] = [];
  for (const span of spans) {
    if (span.until <= span.from) continue;
    const last = result.at(-1);
    if (last === undefined || span.from > last.until) result.push(span);
    else if (span.until > last.until) result[result.length - 1] = { from: last.from, until: span.until };
  }
  return result;
}
