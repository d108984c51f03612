// The set that JetStream takes: nothing in it is a subset of another (error 10138), nothing is lost, nothing is added.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { antichain, intersects, isDisjoint, isSubset, matches } from "../src/index.ts";
import { filters, law, subjects } from "./arbitraries.ts";

const sets = fc.array(filters, { maxLength: 12 });
const union = (set: readonly string[]) => subjects.filter((subject) => set.some((filter) => matches(filter, subject)));

describe("isSubset", () => {
  it.each([
    ["a.*", "a.>", true],
    ["a.>", "a.*", false],
    ["a", "a.>", false],
    ["a.>", "a.>", true],
    ["*.>", ">", true],
    [">", "*.>", false],
    ["a.>", "*.>", true],
    ["a.b.>", "a.*", false],
    ["a.*.>", "a.>", true],
    ["a.>", "a.*.>", false],
    ["a*", "*", true],
  ])("%s within %s: %s", (a, b, expected) => {
    expect(isSubset(a, b)).toBe(expected);
  });

  it("law: it says what comparing every subject says", () => {
    law(
      fc.property(filters, filters, (a, b) => {
        const brute = subjects.every((subject) => !matches(a, subject) || matches(b, subject));
        expect(isSubset(a, b), `${a} within ${b}`).toBe(brute);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("intersects", () => {
  it.each([
    ["*.b", "a.#", false],
    ["*.b", "a.>", true],
    ["a.>", "a", false],
    ["a.*", "*.b", true],
    ["a.*", "b.*", false],
    [">", "a.b", true],
  ])("%s and %s: %s", (a, b, expected) => {
    expect(intersects(a, b)).toBe(expected);
  });

  it("law: it says that some subject matches both, as comparing every subject does", () => {
    law(
      fc.property(filters, filters, (a, b) => {
        expect(intersects(a, b)).toBe(subjects.some((subject) => matches(a, subject) && matches(b, subject)));
      }),
      { numRuns: 3_000 },
    );
  });

  it("law: an antichain is disjoint exactly where no two of its members meet", () => {
    law(
      fc.property(sets, (set) => {
        const chain = antichain(set);
        const meet = chain.some((a, place) => chain.slice(place + 1).some((b) => intersects(a, b)));
        expect(isDisjoint(chain)).toBe(!meet);
      }),
    );
  });
});

describe("antichain", () => {
  it("keeps partial overlaps and drops subsets", () => {
    expect(antichain(["*.*.rabbit", "lazy.>", "lazy.a", "lazy.a"])).toEqual(["*.*.rabbit", "lazy.>"]);
    expect(antichain(["amqp.t.>", "amqp.t", "amqp.t.a"])).toEqual(["amqp.t", "amqp.t.>"]);
    expect(antichain([])).toEqual([]);
  });

  it("law: no member is a subset of another", () => {
    law(
      fc.property(sets, (set) => {
        const chain = antichain(set);
        for (const a of chain) for (const b of chain) expect(isSubset(a, b)).toBe(a === b);
      }),
    );
  });

  it("law: the union is unchanged, and every member was given", () => {
    law(
      fc.property(sets, (set) => {
        const chain = antichain(set);
        expect(union(chain)).toEqual(union(set));
        expect(chain.every((filter) => set.includes(filter))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("law: idempotent, sorted, and independent of order and repetition", () => {
    law(
      fc.property(
        sets.chain((set) =>
          fc.tuple(fc.constant(set), fc.shuffledSubarray([...set, ...set], { minLength: set.length * 2 })),
        ),
        ([set, shuffled]) => {
          const chain = antichain(set);
          expect(antichain(chain)).toEqual(chain);
          expect(antichain(shuffled)).toEqual(chain);
          expect(chain.every((filter, i) => i === 0 || (chain[i - 1] ?? "") < filter)).toBe(true);
        },
      ),
    );
  });

  it("law: it is what comparing all pairs gives", () => {
    law(
      fc.property(sets, (set) => {
        const distinct = [...new Set(set)];
        const naive = distinct.filter((a) => !distinct.some((b) => a !== b && isSubset(a, b)));
        expect(new Set(antichain(set))).toEqual(new Set(naive));
      }),
      { numRuns: 1_000 },
    );
  });

  // Shapes that a pairwise comparison (100 million pairs) takes many seconds for. The bound leaves room for a busy
  // machine: alone each takes less than 100 ms.
  it.each([
    ["literals", (i: number) => `amqp.t.user.${i}`],
    ["wildcards in every place", (i: number) => `amqp.t.${i % 97}.*.${i}.${i % 3 ? "*" : ">"}`],
    [
      "all mixes of a and *",
      (i: number) =>
        `amqp.t.${i.toString(2).padStart(14, "0").slice(0, 10).replaceAll("1", "*").split("").join(".")}.${i}`,
    ],
    ["a key and its tree", (i: number) => `amqp.t.k${i >> 1}${i % 2 ? ".>" : ""}`],
  ])("takes 10,000 filters in near-linear time: %s", (_shape, filterOf) => {
    const many = Array.from({ length: 10_000 }, (_, i) => filterOf(i));
    antichain(many);
    const started = performance.now();
    const chain = antichain(many);
    const took = performance.now() - started;
    expect(chain).toHaveLength(10_000);
    expect(took).toBeLessThan(500);
  });
});
