// How long logins wait after some have failed: never before, longer and longer, at most so long, and not for ever.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Suspicion } from "../../src/amqp091/suspicion.ts";

const PATIENCE = 5_000;

describe("Suspicion", () => {
  it("lets anybody try at once until three logins have failed", () => {
    const suspicion = new Suspicion(4_000);
    for (let failures = 0; failures < 3; failures++) {
      expect(suspicion.wait("a", 0, PATIENCE)).toBe(0);
      suspicion.failed("a", 0);
    }
    expect(suspicion.wait("a", 0, PATIENCE)).toBeGreaterThan(0);
    expect(suspicion.wait("b", 0, PATIENCE)).toBe(0);
  });

  it("gives those that try at once one turn after the other, and none beyond their patience", () => {
    const suspicion = new Suspicion(1_000);
    for (let failures = 0; failures < 10; failures++) suspicion.failed("a", 0);
    const waits = Array.from({ length: 8 }, () => suspicion.wait("a", 0, PATIENCE));
    expect(waits).toEqual([1_000, 2_000, 3_000, 4_000, 5_000, undefined, undefined, undefined]);
    // Who had no turn has not put off the others'.
    expect(suspicion.wait("a", 5_000, PATIENCE)).toBe(1_000);
  });

  it("forgets after a quiet minute", () => {
    const suspicion = new Suspicion(1_000);
    for (let failures = 0; failures < 10; failures++) suspicion.failed("a", 0);
    expect(suspicion.wait("a", 59_999, PATIENCE)).toBe(0); // its turn came long ago
    expect(suspicion.wait("a", 59_999, PATIENCE)).toBe(1_000);
    expect(suspicion.wait("a", 60_000, PATIENCE)).toBe(0);
    expect(suspicion.wait("a", 60_000, PATIENCE)).toBe(0);
  });

  it("law: in any minute no more guesses are looked at than the delay lets through", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(2_000), { minLength: 50, maxLength: 300 }), (pauses) => {
        const suspicion = new Suspicion(1_000);
        const looked: number[] = [];
        let now = 0;
        for (const pause of pauses) {
          now += pause;
          const wait = suspicion.wait("a", now, PATIENCE);
          if (wait === undefined) continue;
          looked.push(now + wait);
          suspicion.failed("a", now + wait);
        }
        looked.sort((a, b) => a - b);
        // Three at once, then 250 and 500 ms, then one a second.
        for (let at = 6; at < looked.length; at++) {
          expect((looked[at] ?? 0) - (looked[at - 1] ?? 0)).toBeGreaterThanOrEqual(1_000);
        }
      }),
    );
  });

  it("is off where nobody waits", () => {
    const suspicion = new Suspicion(0);
    for (let failures = 0; failures < 100; failures++) suspicion.failed("a", 0);
    expect(suspicion.wait("a", 0, PATIENCE)).toBe(0);
  });

  it("remembers ten thousand addresses", () => {
    const suspicion = new Suspicion(1_000);
    for (let address = 0; address < 10_001; address++) {
      for (let failures = 0; failures < 4; failures++) suspicion.failed(`${address}`, 0);
    }
    expect(suspicion.wait("0", 0, PATIENCE)).toBe(0);
    expect(suspicion.wait("1", 0, PATIENCE)).toBeGreaterThan(0);
  });
});
