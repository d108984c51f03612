// Prefetch and the socket's credit: how many may be out, whatever the order of what happens.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Prefetch } from "../../src/amqp091/prefetch.ts";
import { SocketCredit } from "../../src/amqp091/socket-credit.ts";

type Step = { readonly kind: "limit"; readonly count: number } | { readonly kind: "deliver" | "settle" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("limit" as const), count: fc.nat(5) }),
  fc.constant<Step>({ kind: "deliver" }),
  fc.constant<Step>({ kind: "deliver" }),
  fc.constant<Step>({ kind: "settle" }),
);

describe("Prefetch", () => {
  it("law: out + left = limit; nothing goes out before it is opened; 0 is unlimited", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const prefetch = new Prefetch();
        let limit: number | undefined;
        let out = 0;
        for (const one of steps) {
          if (one.kind === "limit") {
            limit = one.count;
            prefetch.limit(one.count);
          } else if (one.kind === "deliver") {
            if (prefetch.credit.left <= 0) continue;
            prefetch.credit.take();
            prefetch.delivered();
            out++;
          } else if (out > 0) {
            out--;
            prefetch.settled(1);
          }
          expect(prefetch.out).toBe(out);
          if (limit === undefined) expect(prefetch.credit.left).toBe(0);
          else if (limit > 0) expect(prefetch.credit.left).toBe(limit - out);
          else expect(prefetch.credit.left).toBeGreaterThan(2 ** 40);
        }
      }),
    );
  });

  it("wakes who waits exactly when there is credit again", () => {
    const prefetch = new Prefetch();
    let woken = 0;
    prefetch.credit.join({ credited: () => woken++ });
    prefetch.limit(1);
    expect(woken).toBe(1);
    prefetch.credit.take();
    prefetch.delivered();
    prefetch.limit(1);
    expect(woken).toBe(1);
    prefetch.settled(1);
    expect(woken).toBe(2);
  });
});

describe("SocketCredit", () => {
  it("law: credit left, owed and parked add up to the window; nothing is asked for above the mark, nothing dealt far above it", () => {
    const mark = 1000;
    const event = fc.oneof(
      fc.record({ kind: fc.constant("deliver" as const), waiting: fc.oneof(fc.nat(2000), fc.nat(20_000)) }),
      fc.record({ kind: fc.constant("moved" as const), waiting: fc.oneof(fc.nat(2000), fc.nat(20_000)) }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 3000, minLength: 100 }), (events) => {
        const socket = new SocketCredit(mark);
        const window = socket.credit.left;
        let owedAtMost = 0;
        for (const { kind, waiting } of events) {
          if (kind === "deliver") {
            if (socket.credit.left <= 0) continue;
            socket.credit.take();
            owedAtMost++;
            socket.delivered(waiting);
          } else {
            socket.moved(waiting);
            if (waiting <= mark && socket.credit.left === window) owedAtMost = 0;
          }
          if (socket.full) expect(socket.credit.wanted).toBe(0);
          else expect(socket.credit.wanted).toBe(socket.credit.left);
          if (waiting > 16 * mark) expect(socket.credit.left).toBe(0);
          if (!socket.full) expect(socket.credit.left).toBeGreaterThanOrEqual(window - owedAtMost);
          expect(socket.credit.left).toBeLessThanOrEqual(window);
        }
        socket.moved(mark + 1);
        expect(socket.credit.wanted).toBe(0);
        socket.moved(0);
        expect(socket.credit.wanted).toBe(window);
      }),
      { numRuns: 30 },
    );
  });
});
