import {
  antichain,
  type ExchangeKind,
  implicitFilter,
  isFault,
  keyMatches,
  matches,
  toFilters,
  toSubject,
} from "@amqp/translator";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BindingRecord, ExchangeRecord, Interval, QueueRecord } from "../src/entities.ts";
import { bindingKey, exchangeKey, parseKey, queueKey, replicaKey } from "../src/keys.ts";
import { Mirror } from "../src/mirror.ts";
import { encodeRecord } from "../src/records.ts";
import { exchangeRecord, queueRecord } from "./records.ts";

const QUEUES = ["p", "q"];
const EXCHANGES = ["x", "y"];
const BINDING_KEYS = ["", "a", "a.b", "#", "a.#", "*", "a.*", "*.b"];
const ROUTING_KEYS = ["", "a", "a.b", "a.c", "b", "a.b.c", "p", "q"];
const IDS = [1, 2];

type WithId<T> = T & { readonly id: number };

/** AMQP's rules over plain lists, without an index, a cache or a filter. */
class Model {
  readonly exchanges = new Map<string, WithId<ExchangeRecord>>();
  readonly queues = new Map<string, WithId<QueueRecord>>();
  readonly bindings = new Map<string, BindingRecord & { queue: string; exchange: string; key: string }>();

  routes(exchange: string, routingKey: string): boolean {
    if (exchange === "") return this.queues.get(routingKey)?.state === "ready";
    return [...this.bindings.values()].some((binding) => {
      const queue = this.queues.get(binding.queue);
      const from = this.exchanges.get(binding.exchange);
      if (binding.exchange !== exchange || queue?.state !== "ready" || from?.state !== "ready") return false;
      return binding.intervals.some(
        ({ until, queueId, exchangeId, kind }) =>
          until === undefined &&
          queueId === queue.id &&
          exchangeId === from.id &&
          keyMatches(kind, binding.key, routingKey),
      );
    });
  }

  holds(name: string, exchange: string, routingKey: string, sequence: number): boolean {
    const queue = this.queues.get(name);
    if (queue === undefined) return false;
    if (exchange === "") return routingKey === name && sequence > queue.from;
    return this.#valid(name).some(
      ([binding, { from, until, kind }]) =>
        binding.exchange === exchange &&
        keyMatches(kind, binding.key, routingKey) &&
        sequence > from &&
        sequence <= (until ?? Number.POSITIVE_INFINITY),
    );
  }

  isUndecided(name: string, exchange: string, routingKey: string, sequence: number): boolean {
    if (exchange === "" || this.holds(name, exchange, routingKey, sequence)) return false;
    return this.#valid(name).some(
      ([binding, { until, closing, kind }]) =>
        closing === true &&
        binding.exchange === exchange &&
        keyMatches(kind, binding.key, routingKey) &&
        sequence > (until ?? 0),
    );
  }

  filters(name: string): string[] {
    const filters = [implicitFilter(name)];
    for (const [{ exchange, key }, { kind }] of this.#valid(name)) {
      const found = toFilters(kind, exchange, key);
      if (!isFault(found)) filters.push(...found);
    }
    return antichain(filters);
  }

  #valid(name: string) {
    const id = this.queues.get(name)?.id;
    return [...this.bindings.values()].flatMap((binding) =>
      binding.queue !== name
        ? []
        : binding.intervals.filter(({ queueId }) => queueId === id).map((interval) => [binding, interval] as const),
    );
  }
}

type Step = (model: Model) => { key: string; record: object | undefined };

const kind = fc.constantFrom<ExchangeKind>("direct", "fanout", "topic");
const id = fc.constantFrom(...IDS);
const interval: fc.Arbitrary<Interval> = fc
  .record({
    from: fc.nat(5),
    length: fc.option(fc.nat(4), { nil: undefined }),
    isClosing: fc.boolean(),
    queueId: id,
    exchangeId: id,
    kind,
  })
  .map(({ from, length, isClosing, ...rest }) => ({
    from,
    ...rest,
    ...(length === undefined ? {} : { until: from + length }),
    ...(length !== undefined && isClosing ? { closing: true as const } : {}),
  }));

const exchangeStep: fc.Arbitrary<Step> = fc
  .record({
    name: fc.constantFrom(...EXCHANGES),
    gone: fc.boolean(),
    record: fc.record({ state: fc.constantFrom("ready" as const, "deleting" as const), kind }),
    id,
  })
  .map(({ name, gone, record, id }) => (model) => {
    const stored = { ...exchangeRecord(record), id };
    if (gone) model.exchanges.delete(name);
    else model.exchanges.set(name, stored);
    return { key: exchangeKey(name), record: gone ? undefined : stored };
  });

const queueStep: fc.Arbitrary<Step> = fc
  .record({
    name: fc.constantFrom(...QUEUES),
    gone: fc.boolean(),
    record: fc.record({
      state: fc.constantFrom("making" as const, "ready" as const, "deleting" as const),
      from: fc.nat(5),
    }),
    id,
  })
  .map(({ name, gone, record, id }) => (model) => {
    const stored = { ...queueRecord(record), id };
    if (gone) model.queues.delete(name);
    else model.queues.set(name, stored);
    return { key: queueKey(name), record: gone ? undefined : stored };
  });

const bindingStep: fc.Arbitrary<Step> = fc
  .record({
    queue: fc.constantFrom(...QUEUES),
    exchange: fc.constantFrom(...EXCHANGES),
    key: fc.constantFrom(...BINDING_KEYS),
    arguments: fc.constantFrom("", '{"a":1}'),
    intervals: fc.option(fc.array(interval, { maxLength: 3 }), { nil: undefined, freq: 5 }),
  })
  .map(({ intervals, ...at }) => (model) => {
    const key = bindingKey(at);
    if (intervals === undefined) model.bindings.delete(key);
    else model.bindings.set(key, { ...at, intervals });
    return { key, record: intervals && { arguments: at.arguments, intervals } };
  });

const steps = fc.array(fc.oneof(exchangeStep, queueStep, { arbitrary: bindingStep, weight: 3 }), { maxLength: 30 });

function subjectOf(exchange: string, routingKey: string): string {
  const subject = toSubject(exchange, routingKey);
  if (isFault(subject)) throw new Error(subject.text);
  return subject;
}

describe("Mirror", () => {
  it("law: after any log of entries it routes, holds and filters as the records say", () => {
    fc.assert(
      fc.property(steps, (log) => {
        const mirror = new Mirror("amqp");
        const model = new Model();
        for (const [index, step] of log.entries()) {
          const { key, record } = step(model);
          mirror.apply({ key, value: record && encodeRecord(record), revision: index + 1 });
          for (const exchange of ["", ...EXCHANGES]) {
            for (const routingKey of ROUTING_KEYS) {
              const subject = subjectOf(exchange, routingKey);
              const told = mirror.routes(exchange, routingKey, subject);
              expect(told).toBe(model.routes(exchange, routingKey));
              for (const queue of QUEUES) {
                for (let sequence = 0; sequence < 10; sequence += 3) {
                  const holds = mirror.holds(queue, subject, sequence);
                  if (holds !== model.holds(queue, exchange, routingKey, sequence))
                    expect.fail(`${queue} ${subject} ${sequence}`);
                  const isUndecided = mirror.isUndecided(queue, subject, sequence);
                  if (isUndecided !== model.isUndecided(queue, exchange, routingKey, sequence))
                    expect.fail(`${queue} ${subject} ${sequence} undecided`);
                }
              }
            }
          }
          for (const queue of QUEUES) expect(mirror.filters(queue)).toEqual(model.filters(queue));
        }
        expect([...mirror.queues()].map(({ name }) => name).toSorted((a, b) => a.localeCompare(b))).toEqual(
          [...model.queues.keys()].toSorted((a, b) => a.localeCompare(b)),
        );
        for (const queue of QUEUES) {
          expect(mirror.bindingsOf(queue)).toHaveLength(
            [...model.bindings.values()].filter((b) => b.queue === queue).length,
          );
        }
        for (const exchange of EXCHANGES) {
          const count = [...model.bindings.values()].filter((b) => b.exchange === exchange).length;
          expect(mirror.bindingsFrom(exchange)).toHaveLength(count);
        }
      }),
      { numRuns: 150 },
    );
  });

  it("law: the end of what is closing decides what was undecided, up to it inside and above it outside, and nothing else", () => {
    const at = { queue: "q", exchange: "x", key: "k", arguments: "" };
    fc.assert(
      fc.property(fc.array(interval, { maxLength: 4 }), fc.nat(4), (some, more) => {
        // One life of the queue and the exchange, and a key that matches whatever the kind is.
        const closing = some.map((each) => ({ ...each, queueId: 2, exchangeId: 1 }));
        const last = Math.max(0, ...closing.map(({ until }) => until ?? 0)) + more;
        const closed = closing.map(({ closing: isClosing, ...each }) => (isClosing ? { ...each, until: last } : each));
        const told = [closing, closed].map((intervals) => {
          const mirror = new Mirror("amqp");
          mirror.apply({ key: exchangeKey("x"), value: encodeRecord(exchangeRecord()), revision: 1 });
          mirror.apply({ key: queueKey("q"), value: encodeRecord(queueRecord()), revision: 2 });
          mirror.apply({ key: bindingKey(at), value: encodeRecord({ arguments: "", intervals }), revision: 3 });
          return mirror;
        }) as [Mirror, Mirror];
        const [before, after] = told;
        for (let sequence = 0; sequence < 16; sequence++) {
          const [held, holds] = told.map((mirror) => mirror.holds("q", "amqp.x.k", sequence));
          if (before.isUndecided("q", "amqp.x.k", sequence)) {
            expect(held).toBe(false);
            expect(holds).toBe(sequence <= last);
          } else expect(holds).toBe(held);
          expect(after.isUndecided("q", "amqp.x.k", sequence)).toBe(false);
        }
        // Nobody is told that it is routable once it is being undone.
        const [routed, routes] = told.map((mirror) => mirror.routes("x", "k", "amqp.x.k"));
        expect(routed).toBe(routes);
        expect(before.filters("q")).toEqual(after.filters("q"));
      }),
    );
  });

  it("law: what a queue holds, its filters catch", () => {
    fc.assert(
      fc.property(steps, (log) => {
        const mirror = new Mirror("amqp");
        const model = new Model();
        for (const [index, step] of log.entries()) {
          const { key, record } = step(model);
          mirror.apply({ key, value: record && encodeRecord(record), revision: index + 1 });
        }
        for (const queue of QUEUES) {
          const filters = mirror.filters(queue);
          for (const exchange of ["", ...EXCHANGES]) {
            for (const routingKey of ROUTING_KEYS) {
              const subject = subjectOf(exchange, routingKey);
              const held = [1, 4, 7, 10].some(
                (sequence) => mirror.holds(queue, subject, sequence) || mirror.isUndecided(queue, subject, sequence),
              );
              if (held) expect(filters.some((filter) => matches(filter, subject))).toBe(true);
            }
          }
        }
      }),
    );
  });

  it("law: a key of the bucket names what it was spelled from", () => {
    const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/);
    fc.assert(
      fc.property(
        name,
        name,
        fc.string({ unit: "grapheme", maxLength: 255 }),
        fc.string(),
        (queue, exchange, key, args) => {
          const spelled = bindingKey({ queue, exchange, key, arguments: args });
          expect(spelled).toMatch(/^[-/=.\w]+$/);
          expect(parseKey(spelled)).toEqual({ kind: "binding", queue, exchange, key });
          expect(parseKey(queueKey(queue))).toEqual({ kind: "queue", name: queue });
          expect(parseKey(exchangeKey(exchange))).toEqual({ kind: "exchange", name: exchange });
          expect(parseKey(replicaKey(queue))).toEqual({ kind: "replica", name: queue });
        },
      ),
    );
    expect(() => queueKey("a.b")).toThrow(RangeError);
    expect(() => exchangeKey("")).toThrow(RangeError);
  });

  it("counts an unreadable record as absent, says so, and ignores keys it does not know", () => {
    const unreadable: string[] = [];
    const mirror = new Mirror("amqp", (key) => unreadable.push(key));
    mirror.apply({ key: "q.q", value: encodeRecord(queueRecord()), revision: 1 });
    for (const [index, text] of ["", "[]", "{", '{"state":"odd"}'].entries()) {
      mirror.apply({ key: "q.q", value: Buffer.from(text), revision: index + 2 });
      expect(mirror.queue("q")).toBeUndefined();
    }
    mirror.apply({ key: "z.later", value: Buffer.from("?"), revision: 9 });
    expect(unreadable).toEqual(["q.q", "q.q", "q.q", "q.q"]);
    expect(mirror.revision).toBe(9);
  });

  it("does not believe an interval that is closing and has held up to nowhere", () => {
    const unreadable: string[] = [];
    const mirror = new Mirror("amqp", (key) => unreadable.push(key));
    const interval = { from: 1, queueId: 2, exchangeId: 1, kind: "topic" };
    for (const [index, end] of [{ closing: true }, { closing: "yes", until: 4 }, { closing: true, until: 4 }].entries())
      mirror.apply({
        key: `b.q.x.k${index}`,
        value: encodeRecord({ arguments: "", intervals: [{ ...interval, ...end }] }),
        revision: index + 1,
      });
    expect(unreadable).toEqual(["b.q.x.k0", "b.q.x.k1"]);
  });

  it("keeps answering after far more subjects than it remembers", () => {
    const mirror = new Mirror("amqp");
    feed(mirror, 1);
    for (let i = 0; i < 10_000; i++) {
      expect(mirror.holds("q", `amqp.x.k0.${i}`, 5)).toBe(true);
      expect(mirror.routes("x", `k0.${i}`, `amqp.x.k0.${i}`)).toBe(true);
      expect(mirror.holds("q", `amqp.x.other.${i}`, 5)).toBe(false);
    }
  });

  it("takes 10,000 bindings of one queue", () => {
    const mirror = new Mirror("amqp");
    feed(mirror, 10_000);
    const filters = mirror.filters("q");
    expect(filters).toHaveLength(20_001);
    expect(antichain(filters)).toEqual(filters);
    expect(mirror.bindingsOf("q")).toHaveLength(10_000);
    expect(mirror.routes("x", "k9999.a", "amqp.x.k9999.a")).toBe(true);
    expect(mirror.routes("x", "k10000", "amqp.x.k10000")).toBe(false);
    expect(mirror.holds("q", "amqp.x.k77", 5)).toBe(true);
    expect(mirror.holds("q", "amqp.x.k77", 4)).toBe(false);
  });
});

/** One queue bound to one exchange by `count` keys `k<i>.#`, each from sequence 4 on. */
function feed(mirror: Mirror, count: number): void {
  mirror.apply({ key: "x.x", value: encodeRecord(exchangeRecord()), revision: 1 });
  mirror.apply({ key: "q.q", value: encodeRecord(queueRecord()), revision: 2 });
  const intervals: Interval[] = [{ from: 4, queueId: 2, exchangeId: 1, kind: "topic" }];
  for (let i = 0; i < count; i++) {
    const key = bindingKey({ queue: "q", exchange: "x", key: `k${i}.#`, arguments: "" });
    mirror.apply({ key, value: encodeRecord({ arguments: "", intervals }), revision: 3 + i });
  }
}
