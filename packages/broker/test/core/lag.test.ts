// What the log has and a cursor has not heard of: what is waited for, how long, and how it is looked for.
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Bus } from "../../src/core/bus.ts";
import type { Segment } from "../../src/core/interval-segments.ts";
import { Lag } from "../../src/core/lag.ts";
import { anyWithin } from "../../src/core/log-look.ts";

/** A log that ends at `last`, and whose every look is written down. */
function log(last: number): { readonly bus: Bus; readonly looks: (number | undefined)[] } {
  return { bus: { lastSequence: async () => last } as Partial<Bus> as Bus, looks: [] };
}

describe("a cursor's lag", () => {
  it("is over when the log has nothing that the cursor has not", async () => {
    const { bus } = log(7);
    expect(await new Lag(bus).isBehind(async () => false)).toBe(false);
  });

  it("is waited for far beyond the milliseconds of one server: an election of a cluster's takes seconds", async () => {
    const { bus } = log(7);
    const lag = new Lag(bus);
    const caughtUp = performance.now() + 1_000;
    let rounds = 0;
    while (await lag.isBehind(async () => performance.now() < caughtUp)) rounds++;
    expect(performance.now()).toBeGreaterThanOrEqual(caughtUp);
    // It is asked rarer the longer it lasts.
    expect(rounds).toBeLessThan(20);
  });

  it("does not count what is published after the first look", async () => {
    const { bus, looks } = log(7);
    const lag = new Lag(bus);
    const look = async (until: number | undefined): Promise<boolean> => {
      looks.push(until);
      return true;
    };
    await lag.isBehind(look);
    await lag.isBehind(look);
    expect(looks).toEqual([undefined, 7]);
  });

  it("looks no further than the end it was given", async () => {
    const { bus, looks } = log(7);
    await new Lag(bus, 5).isBehind(async (until) => {
      looks.push(until);
      return true;
    });
    expect(looks).toEqual([5]);
  });

  it("is waited for anew where nobody led the cursor in between", async () => {
    const { bus } = log(7);
    const lag = new Lag(bus, undefined, 1_200);
    expect(await lag.isBehind(async () => true)).toBe(true);
    // As long as its state was not to be had, longer than it is waited for: an election.
    await sleep(1_500);
    expect(await lag.isBehind(async () => true)).toBe(true);
    expect(await lag.isBehind(async () => true)).toBe(true);
    // Not for ever.
    await sleep(1_500);
    expect(await lag.isBehind(async () => true)).toBe(false);
  });

  it("ends where a cursor never hears of what the log has", async () => {
    const { bus } = log(7);
    const lag = new Lag(bus, undefined, 300);
    const began = performance.now();
    while (await lag.isBehind(async () => true));
    expect(performance.now() - began).toBeGreaterThanOrEqual(300);
  });
});

describe("a look into the log", () => {
  /** A log of subjects by sequence, one subject a filter, that counts what it is asked. */
  function lookedInto(subjects: ReadonlyMap<number, string>): { readonly bus: Bus; asked: number } {
    const log = {
      asked: 0,
      bus: {
        lastSequence: async () => Math.max(0, ...subjects.keys()),
        nextAbove: async (filter: string, above: number) => {
          log.asked++;
          return [...subjects].find(([sequence, subject]) => sequence > above && subject === filter)?.[0];
        },
      } as Partial<Bus> as Bus,
    };
    return log;
  }

  const filter = fc.constantFrom("a", "b", "c");
  const someSegments = fc
    .tuple(fc.nat(5), fc.array(fc.record({ length: fc.integer({ min: 1, max: 4 }), filters: fc.uniqueArray(filter) })))
    .map(([start, stretches]) => {
      let above = start;
      return stretches.map(({ length, filters }, place): Segment => {
        const segment = { above, until: place === stretches.length - 1 ? undefined : above + length, filters };
        above += length;
        return segment;
      });
    });
  const someLog = fc
    .array(fc.option(filter), { maxLength: 20 })
    .map((subjects) => new Map(subjects.flatMap((subject, at) => (subject === null ? [] : [[at + 1, subject]]))));

  it("finds something iff some segment holds a message of one of its filters, up to the end that counts", async () => {
    await fc.assert(
      fc.asyncProperty(someSegments, someLog, fc.integer({ min: 1, max: 25 }), async (segments, subjects, end) => {
        const holds = [...subjects].some(([sequence, subject]) =>
          segments.some(
            ({ above, until = Number.POSITIVE_INFINITY, filters }) =>
              sequence > above && sequence <= Math.min(until, end) && filters.includes(subject),
          ),
        );
        expect(await anyWithin(lookedInto(subjects).bus, segments, end)).toBe(holds);
      }),
    );
  });

  it("asks once for each filter where nothing came, however often the bindings changed", async () => {
    const segments = Array.from({ length: 500 }, (_, at) => ({
      above: at * 2,
      until: at === 499 ? undefined : at * 2 + 2,
      filters: at % 2 === 0 ? ["a"] : ["a", "b"],
    }));
    const log = lookedInto(new Map([[2_000, "c"]]));
    expect(await anyWithin(log.bus, segments)).toBe(false);
    expect(log.asked).toBe(2);
  });
});
