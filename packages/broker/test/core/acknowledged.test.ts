import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Acknowledged } from "../../src/core/acknowledged.ts";

const MOST = 4_096;

describe("what was acknowledged last", () => {
  it("law: the latest 4,096 above the floor, oldest first", () => {
    const sequences = fc.array(fc.integer({ min: 1, max: 20_000 }), { maxLength: 10_000, size: "max" });
    fc.assert(
      fc.property(sequences, fc.integer({ min: 0, max: 20_000 }), (all, floor) => {
        const acknowledged = new Acknowledged();
        for (const sequence of all) acknowledged.add(sequence);
        const kept = all.slice(-MOST).filter((sequence) => sequence > floor);
        expect(acknowledged.above(floor)).toEqual(kept);
      }),
      { numRuns: 50 },
    );
  });

  it("law: what was forgotten is not among it, and what comes after is", () => {
    const some = fc.array(fc.integer({ min: 1, max: 20_000 }), { maxLength: 6_000, size: "max" });
    fc.assert(
      fc.property(some, some, (before, after) => {
        const acknowledged = new Acknowledged();
        for (const sequence of before) acknowledged.add(sequence);
        acknowledged.forget();
        for (const sequence of after) acknowledged.add(sequence);
        expect(acknowledged.above(0)).toEqual(after.slice(-MOST));
      }),
      { numRuns: 50 },
    );
  });
});
