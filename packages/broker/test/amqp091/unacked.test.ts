// The ring of delivered and unsettled messages against a sorted map.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Unacked } from "../../src/amqp091/unacked.ts";

type Step =
  | { readonly kind: "book" | "skip" }
  | { readonly kind: "take" | "upTo"; readonly tag: number }
  | { readonly kind: "all" };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Step>({ kind: "book" }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: "skip" }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("take" as const), tag: fc.integer({ min: 0, max: 120 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("upTo" as const), tag: fc.integer({ min: 0, max: 120 }) }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "all" }) },
);

describe("Unacked", () => {
  it("law: it holds what was booked and not taken, and gives it back in the order of the tags", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const ring = new Unacked<string>();
        const model = new Map<number, string>();
        let last = 0;
        for (const one of steps) {
          switch (one.kind) {
            case "book": {
              const tag = ring.allocate();
              expect(tag).toBe(++last);
              ring.book(tag, `d${tag}`);
              model.set(tag, `d${tag}`);
              break;
            }
            case "skip":
              expect(ring.allocate()).toBe(++last);
              break;
            case "take":
              expect(ring.take(one.tag)).toBe(model.get(one.tag));
              model.delete(one.tag);
              break;
            case "upTo": {
              const due = [...model].filter(([tag]) => tag <= one.tag);
              expect(ring.takeUpTo(one.tag)).toEqual(due.map(([, item]) => item));
              for (const [tag] of due) model.delete(tag);
              break;
            }
            case "all":
              expect(ring.takeAll()).toEqual([...model.values()]);
              model.clear();
              break;
          }
          expect(ring.size).toBe(model.size);
        }
      }),
    );
  });

  it("needs memory for what is held, not for how long the oldest has been", () => {
    const ring = new Unacked<number>();
    ring.book(ring.allocate(), 0);
    for (let i = 1; i < 100_000; i++) {
      const tag = ring.allocate();
      ring.book(tag, i);
      ring.take(tag);
    }
    expect(ring.size).toBe(1);
    expect(ring.capacity).toBeLessThanOrEqual(32);
    expect(ring.take(1)).toBe(0);
  });
});
