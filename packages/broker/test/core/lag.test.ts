// What a cursor that lags the log is waited for, and how long.
import { describe, expect, it } from "vitest";
import type { Bus } from "../../src/core/bus.ts";
import { Lag } from "../../src/core/lag.ts";

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

  it("ends where a cursor never hears of what the log has", async () => {
    const { bus } = log(7);
    const lag = new Lag(bus, undefined, 300);
    const began = performance.now();
    while (await lag.isBehind(async () => true));
    expect(performance.now() - began).toBeGreaterThanOrEqual(300);
  });
});
