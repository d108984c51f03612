// The trie says what a linear scan says, whatever was added and removed, and keeps nothing when empty.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FilterIndex, matches } from "../src/index.ts";
import { filters, law, subjects } from "./arbitraries.ts";

const steps = fc.array(fc.record({ adds: fc.boolean(), filter: filters, value: fc.integer({ min: 0, max: 3 }) }), {
  maxLength: 40,
});

describe("FilterIndex", () => {
  it("law: after any additions and removals it finds what a linear scan finds", () => {
    law(
      fc.property(steps, fc.shuffledSubarray([...subjects], { minLength: 30, maxLength: 30 }), (script, asked) => {
        const index = new FilterIndex<number>();
        const pairs = new Map<string, { filter: string; value: number }>();
        for (const { adds, filter, value } of script) {
          const key = `${filter} ${value}`;
          if (adds) {
            expect(index.add(filter, value)).toBe(!pairs.has(key));
            pairs.set(key, { filter, value });
          } else {
            expect(index.remove(filter, value)).toBe(pairs.delete(key));
          }
        }
        expect(index.size).toBe(pairs.size);
        for (const subject of asked) {
          const scan = [...pairs.values()].filter((pair) => matches(pair.filter, subject)).map((pair) => pair.value);
          expect(index.collect(subject, new Set())).toEqual(new Set(scan));
          for (const value of [0, 1, 2, 3]) {
            expect(index.some(subject, (found) => found === value)).toBe(scan.includes(value));
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("law: removing all that was added, in any order, leaves a bare root", () => {
    const scripts = fc
      .uniqueArray(fc.tuple(filters, fc.integer({ min: 0, max: 3 })), { selector: (pair) => pair.join(" ") })
      .chain((pairs) => fc.tuple(fc.constant(pairs), fc.shuffledSubarray(pairs, { minLength: pairs.length })));
    law(
      fc.property(scripts, ([pairs, order]) => {
        const index = new FilterIndex<number>();
        for (const [filter, value] of pairs) index.add(filter, value);
        for (const [filter, value] of order) {
          index.remove("nowhere.*.>", value);
          expect(index.remove(filter, value)).toBe(true);
        }
        expect({ size: index.size, nodes: index.nodes }).toEqual({ size: 0, nodes: 1 });
      }),
    );
  });

  it("law: what stays costs the nodes it costs alone", () => {
    law(
      fc.property(fc.uniqueArray(filters), fc.uniqueArray(filters), (stay, go) => {
        const alone = new FilterIndex<string>();
        const index = new FilterIndex<string>();
        for (const filter of stay) alone.add(filter, "stay");
        for (const filter of go) index.add(filter, "go");
        for (const filter of stay) index.add(filter, "stay");
        for (const filter of go) index.remove(filter, "go");
        expect(index.nodes).toBe(alone.nodes);
      }),
    );
  });

  it("stops at the first value that the predicate takes", () => {
    const index = new FilterIndex<number>();
    for (let value = 0; value < 100; value++) index.add("amqp.t.>", value);
    let asked = 0;
    expect(index.some("amqp.t.k", () => ++asked > 0)).toBe(true);
    expect(asked).toBe(1);
  });

  it("visits at 10,000 queues what it visits at 100", () => {
    const asked = (queues: number) => {
      const index = new FilterIndex<number>();
      for (let queue = 0; queue < queues; queue++) index.add(`amqp._.q${queue}`, queue);
      let visits = 0;
      index.some("amqp._.q77", () => ++visits < 0);
      return visits;
    };
    expect(asked(10_000)).toBe(asked(100));
  });
});
