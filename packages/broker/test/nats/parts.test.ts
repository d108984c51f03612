import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AckFacts, readAckSubject, toAckSubject } from "../../src/nats/ack-subject.ts";
import { Budget, type BudgetWaiter, MOST_SHARE, PULL_OCTETS } from "../../src/nats/budget.ts";
import { base64Length, HEADER_OVERHEAD, PropsHeader, readProps } from "../../src/nats/props-header.ts";
import { isStored } from "../../src/nats/pub-ack.ts";
import { Queue } from "../../src/nats/queue.ts";
import { Width } from "../../src/nats/width.ts";

const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/);
const number = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });

describe("ack subjects", () => {
  const nothing = (): AckFacts => ({ attempts: 0, sequence: 0, deliverySequence: 0, time: 0 });

  it("reads both forms alike: without and with domain and account", () => {
    fc.assert(
      fc.property(
        name,
        name,
        fc.nat(1_000),
        number,
        number,
        fc.nat(2_000_000_000_000),
        (stream, queue, n, s, c, ms) => {
          const tail = `${stream}.${queue}.${n}.${s}.${c}.${ms}123456.7`;
          const expected = { attempts: n, sequence: s, deliverySequence: c, time: ms };
          for (const subject of [`$JS.ACK.${tail}`, `$JS.ACK.hub.A1B2.${tail}`, `$JS.ACK._.A1B2.${tail}.rAnDoM`]) {
            const facts = nothing();
            expect(readAckSubject(subject, facts)).toBe(true);
            expect(facts).toEqual(expected);
          }
        },
      ),
    );
  });

  it("writes what it reads", () => {
    fc.assert(
      fc.property(name, name, number, number, (stream, queue, sequence, deliverySequence) => {
        const facts = nothing();
        expect(readAckSubject(toAckSubject(stream, queue, sequence, deliverySequence), facts)).toBe(true);
        expect(facts).toMatchObject({ sequence, deliverySequence });
      }),
    );
  });

  it("takes nothing else for one", () => {
    for (const subject of [
      "",
      "_INBOX.a.b",
      "$JS.ACK.",
      "$JS.ACK.AMQP.q.1.2.3",
      "$JS.API.CONSUMER.MSG.NEXT.AMQP.q.1.2",
    ]) {
      expect(readAckSubject(subject, nothing())).toBe(false);
    }
  });
});

describe("the Amqp-Props header", () => {
  const octets = fc.uint8Array({ minLength: 2, maxLength: 400 });

  it("brings back every octet, of any properties after any others", () => {
    fc.assert(
      fc.property(fc.array(octets, { minLength: 1, maxLength: 5 }), (all) => {
        const header = new PropsHeader();
        for (const properties of all) {
          const block = header.block(properties);
          expect(block.length).toBe(HEADER_OVERHEAD + base64Length(properties.length));
          expect(new Uint8Array(readProps(Buffer.from(block)) ?? [])).toEqual(properties);
        }
      }),
    );
  });

  it("does not confuse the block before with the same buffer changed since", () => {
    const header = new PropsHeader();
    const properties = new Uint8Array([0x10, 0, 1]);
    header.block(properties);
    properties[2] = 2;
    expect(new Uint8Array(readProps(Buffer.from(header.block(properties))) ?? [])).toEqual(properties);
  });

  it("is found among others, is none where absent, and is told where it is no base64", () => {
    const read = (lines: string): Uint8Array | undefined => readProps(Buffer.from(`NATS/1.0\r\n${lines}\r\n\r\n`));
    expect([...(read("A: Amqp-Props: x\r\nAmqp-Props:EAAC\r\nB: c") ?? [])]).toEqual([0x10, 0, 2]);
    expect([...(read("Amqp-Props:   EAAC  ") ?? [])]).toEqual([0x10, 0, 2]);
    expect([...(read("A: b") ?? [])]).toEqual([0, 0]);
    expect([...(read("X-Amqp-Props: EAAC") ?? [])]).toEqual([0, 0]);
    expect(read("Amqp-Props: !!!!")).toBeUndefined();
    expect(read("Amqp-Props: EAAC,EAAC")).toBeUndefined();
    expect(read("Amqp-Props: ")).toBeUndefined();
    expect(read("Amqp-Props: AA==")).toBeUndefined();
  });
});

describe("answers to publishes", () => {
  it("are told apart by their first octets", () => {
    const octets = (text: string): Uint8Array => new TextEncoder().encode(text);
    expect(isStored(octets('{"stream":"AMQP","seq":1}'))).toBe(true);
    expect(isStored(octets('{"stream":"S", "domain":"hub", "seq":1, "duplicate":true}'))).toBe(true);
    expect(isStored(octets('{"error":{"code":503,"err_code":10077},"stream":"AMQP","seq":0}'))).toBe(false);
    expect(isStored(new Uint8Array(0))).toBe(false);
  });
});

describe("the queue", () => {
  it("is an array with push, shift and unshift", () => {
    const step = fc.oneof(
      fc.record({ push: fc.nat() }),
      fc.record({ unshift: fc.array(fc.nat(), { maxLength: 3 }) }),
      fc.constant("shift" as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new Queue<number>();
        const model: number[] = [];
        for (const each of steps) {
          if (each === "shift") expect(queue.shift()).toBe(model.shift());
          else if ("push" in each) {
            queue.push(each.push);
            model.push(each.push);
          } else {
            queue.unshift(each.unshift);
            model.unshift(...each.unshift);
          }
          expect(queue.length).toBe(model.length);
        }
      }),
    );
  });
});

describe("the budget", () => {
  it("never gives out more than its sum, starves nobody, and gets everything back", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ appetite: fc.nat(2 * MOST_SHARE), giveBack: fc.nat(3) }), {
          minLength: 1,
          maxLength: 400,
        }),
        fc.integer({ min: 1, max: 20_000 }),
        (askers, lines) => {
          const budget = new Budget(9_000_000);
          budget.lines = lines;
          const out: number[] = [];
          let granted = 0;
          for (const asker of askers) {
            const waiter: BudgetWaiter = {
              appetite: asker.appetite,
              granted: (octets) => {
                granted++;
                expect(octets).toBeGreaterThanOrEqual(1_024);
                expect(octets).toBeLessThanOrEqual(MOST_SHARE);
                out.push(octets);
                return true;
              },
            };
            budget.take(waiter);
            for (let i = 0; i < asker.giveBack; i++) budget.giveBack(out.pop() ?? 0);
            expect(out.reduce((sum, octets) => sum + octets, 0) + budget.free).toBe(PULL_OCTETS);
            expect(budget.free).toBeGreaterThanOrEqual(0);
          }
          while (out.length > 0) budget.giveBack(out.shift() ?? 0);
          expect(granted).toBe(askers.length);
          expect(budget.free).toBe(PULL_OCTETS);
        },
      ),
      { numRuns: 50 },
    );
  });

  it("has a share for each of 10,000 lines within the sum", () => {
    const budget = new Budget(9_000_000);
    budget.lines = 10_000;
    let granted = 0;
    for (let i = 0; i < 10_000; i++) {
      budget.take({
        appetite: 0,
        granted: () => {
          granted++;
          return true;
        },
      });
    }
    expect(granted).toBe(10_000);
  });

  it("gives the reserve to one after the other, in order, and always to one", () => {
    const budget = new Budget(64 * 1024 * 1024);
    const order: number[] = [];
    for (let i = 0; i < 3; i++) {
      budget.takeLargest({
        appetite: 0,
        granted: () => {
          order.push(i);
          // The second is not interested any more.
          return i !== 1;
        },
      });
    }
    expect(order).toEqual([0]);
    budget.giveBackLargest();
    expect(order).toEqual([0, 1, 2]);
  });
});

describe("the width of a queue's messages", () => {
  it("never asks for more than fits while sizes do not grow", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 1_024, max: MOST_SHARE }),
        (size, share) => {
          const width = new Width();
          width.saw(size);
          const count = width.fitting(share);
          expect(count).toBeGreaterThanOrEqual(1);
          if (count > 1) expect(count * size).toBeLessThanOrEqual(share);
        },
      ),
    );
  });

  it("forgets a large one after some hundreds of small ones", () => {
    const width = new Width();
    width.saw(8_000_000);
    expect(width.octets).toBeGreaterThan(MOST_SHARE);
    for (let i = 0; i < 300; i++) width.saw(100);
    expect(width.octets).toBeLessThan(MOST_SHARE);
  });
});
