// What may be done with a cursor without holding the bus up.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { LogState } from "../../src/core/bus.ts";
import { mayCount, mayDelete } from "../../src/core/walk.ts";

const log = (messages: number, consumers: number): LogState => ({
  messages,
  bytes: messages * 100,
  firstSequence: 1,
  lastSequence: messages,
  consumers,
});

test("a few messages beside a few queues are counted by a throwaway cursor, what would take the bus a second is not", () => {
  expect(mayCount(log(1_000, 10), 0)).toBe(true);
  expect(mayCount(log(37_500, 100), 0)).toBe(false);
});

test("what is behind more than 50,000 sequences is emptied first, however few of them are there still", () => {
  expect(mayDelete({ ...log(10, 1), lastSequence: 50_001 }, 0)).toBe(false);
  expect(mayDelete({ ...log(10, 1), lastSequence: 50_000 }, 0)).toBe(true);
});

test("law: what may be counted may be deleted, and nearer to the end or beside fewer consumers it still may", () => {
  const number = fc.nat(60_000);
  fc.assert(
    fc.property(number, number, fc.integer({ min: 1, max: 2_000 }), (messages, above, consumers) => {
      const state = log(messages, consumers);
      if (mayCount(state, above)) expect(mayDelete(state, above)).toBe(true);
      for (const may of [mayCount, mayDelete]) {
        if (!may(state, above)) continue;
        expect(may(state, above + 1)).toBe(true);
        expect(may(log(messages, Math.max(1, consumers - 1)), above)).toBe(true);
      }
    }),
  );
});
