/** When the doors are closed, and when they are opened again. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { Health } from "../../src/core/health.ts";

const TIMEOUT = 50;
const quiet = (): void => undefined;
let told: string[];
let health: Health;

beforeEach(() => {
  told = [];
  health = new Health({ debug: quiet, info: quiet, warn: quiet, error: quiet }, TIMEOUT);
  health.join({
    blocked: (reason) => told.push(reason === undefined ? "unblocked" : `blocked: ${reason}`),
    room: () => told.push("room"),
    closing: (reason) => told.push(`closing: ${reason}`),
    serving: () => told.push("serving"),
  });
});

describe("a bus that is away", () => {
  test("for a moment blocks publishers, no more", async () => {
    health.away();
    health.back(true);
    await sleep(TIMEOUT * 2);
    expect(told).toEqual(["blocked: the bus is away", "unblocked"]);
  });

  test("for too long closes the doors, until all is well again", async () => {
    health.away();
    health.absent();
    await sleep(TIMEOUT * 2);
    expect(told.splice(0)).toEqual([
      "blocked: the bus is away",
      "closing: the bus is away for too long; connect again when it is back",
    ]);
    health.back(false);
    expect(told.splice(0)).toEqual(["unblocked"]);
    health.present();
    expect(told).toEqual(["serving"]);
  });

  test("again and again gets its time each time", async () => {
    for (let round = 0; round < 3; round++) {
      health.away();
      await sleep(TIMEOUT * 0.6);
      health.back(false);
    }
    expect(told.filter((line) => line.startsWith("closing"))).toEqual([]);
  });
});

describe("a presence that cannot be kept", () => {
  test("for too long closes the doors, although the bus is there", async () => {
    health.absent();
    await sleep(TIMEOUT * 2);
    health.present();
    expect(told).toEqual(["closing: this replica cannot keep its lease on the bus; connect again", "serving"]);
  });

  test("counts from the trouble's beginning: a bus that is back first starts no new time", async () => {
    health.away();
    health.absent();
    await sleep(TIMEOUT * 0.6);
    health.back(false);
    await sleep(TIMEOUT * 0.8);
    expect(told.at(-1)).toMatch("this replica cannot keep its lease");
  });
});

test("of several reasons the first one stands until it ends", () => {
  health.full(true);
  health.stalled(true);
  health.away();
  health.back(false);
  health.stalled(false);
  health.full(false);
  expect(told).toEqual([
    "blocked: the stream is full",
    "blocked: the stream has no leader",
    "blocked: the bus is away",
    "blocked: the stream has no leader",
    "blocked: the stream is full",
    "unblocked",
  ]);
});
