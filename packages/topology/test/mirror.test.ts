import { antichain, matches } from "@amqp/translator";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Interval } from "../src/entities.ts";
import { bindingKey, exchangeKey, parseKey, queueKey, replicaKey } from "../src/keys.ts";
import { Mirror } from "../src/mirror.ts";
import { encodeRecord } from "../src/records.ts";
import { EXCHANGES, interval, Model, QUEUES, ROUTING_KEYS, steps, subjectOf } from "./mirror-model.ts";
import { exchangeRecord, queueRecord } from "./records.ts";

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
