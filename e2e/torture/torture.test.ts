// A minute of torture in CI: three gateways, one bus, everything that can happen to them. AMQP_TORTURE_SEED (a number;
// CI may give its build's) picks from the seeds below, AMQP_TORTURE_SECONDS how long the actors work.
import { afterAll, expect, it } from "vitest";
import { releaseAll } from "../harness/owned.ts";
import { report, type TortureOptions, torture } from "./run.ts";

/** Ones that have found something while this was built. */
const SEEDS = [1, 100, 101, 102] as const;

const seconds = Number(process.env.AMQP_TORTURE_SECONDS ?? 30);

afterAll(releaseAll);

it(
  "keeps every law while gateways and the bus are killed, stopped and restarted",
  async () => {
    const turn = Number(process.env.AMQP_TORTURE_SEED ?? 0);
    const seed = SEEDS[turn] ?? turn;
    const options: TortureOptions = { seed, seconds, faults: ["kill", "stop", "restart", "bus"] };
    const result = await torture(options);
    expect(result.violations, report(options, result)).toEqual([]);
    // A run in which nothing happened says nothing.
    expect(result.history.drained.size).toBeGreaterThan(0);
    expect(result.history.publishes.filter(({ outcome }) => outcome === "acked").length).toBeGreaterThan(seconds * 20);
    expect(result.history.faults.length).toBeGreaterThan(0);
    expect(result.history.deliveries.filter(({ settlement }) => settlement === "sent").length).toBeGreaterThan(0);
    expect(result.history.operations.filter(({ messages = 0 }) => messages > 0).length).toBeGreaterThan(0);
    expect(result.history.ownerships.length).toBeGreaterThan(0);
  },
  (seconds + 180) * 1_000,
);
