// Bindings are intervals: whatever is bound, unbound, published, taken, given back, deleted and declared again, a queue
// holds exactly what AMQP says. Seeds are fixed in CI; AMQP_MODEL_SEEDS=100 runs that many, AMQP_MODEL_STEPS longer
// ones, AMQP_MODEL_SEED=7 only that one. The same histories run on RabbitMQ where AMQP_REFERENCE_URL names one.
import { describe, expect, it } from "vitest";
import { untilStreamEmpty } from "../crosswire/bus.ts";
import { isReference } from "../harness/reference.ts";
import { target } from "../harness/target.ts";
import { history, type Operation, shrink, spell } from "./operations.ts";
import type { Place } from "./pair.ts";
import { Difference, run } from "./runner.ts";

const STEPS = Number(process.env.AMQP_MODEL_STEPS ?? 1_000);
const [only, count] = [process.env.AMQP_MODEL_SEED, Number(process.env.AMQP_MODEL_SEEDS ?? 3)];
const SEEDS = only === undefined ? Array.from({ length: count }, (_, seed) => seed + 1) : [Number(only)];
/** Milliseconds spent on a shorter history. */
const SHRINKING = Number(process.env.AMQP_MODEL_SHRINKING ?? 30_000);

describe("a broker against the model of AMQP", () => {
  it.each(SEEDS)("seed %i", { timeout: 60_000 + STEPS * 50 + SHRINKING }, async (seed) => {
    const operations = history(seed, STEPS);
    const place = await thisPlace();
    const difference = await differenceIn(place, operations);
    if (difference === undefined) return;
    const quick: Place = { ...place, timeout: 1_000 };
    const fails = async (part: readonly Operation[]): Promise<boolean> =>
      (await differenceIn(quick, part)) !== undefined;
    const shortest = await shrink(difference.done, fails, SHRINKING);
    const again = await differenceIn(quick, shortest);
    expect.fail(
      `seed ${seed}, step ${difference.step}: ${difference.message}\n` +
        `the shortest history found (${shortest.length} steps) ends in: ${again?.message ?? "nothing when repeated, so it is a race"}\n${spell(shortest)}`,
    );
  });

  it("has nothing left on the bus once every queue was read to its end", async () => {
    const { natsUrl } = await target();
    if (natsUrl !== undefined) await untilStreamEmpty(natsUrl, 10_000);
  });

  it("reports a history that fails as a short one", async () => {
    const operations = history(1, 200);
    const fails = async (part: readonly Operation[]): Promise<boolean> =>
      part.some(({ do: what }) => what === "purge") && part.some(({ do: what }) => what === "recover");
    expect(await fails(operations)).toBe(true);
    expect(await shrink(operations, fails, 1_000)).toHaveLength(2);
  });
});

async function thisPlace(): Promise<Place> {
  const { host, port } = await target();
  return isReference
    ? { host, port, requeueing: "in place", patience: 2_000, timeout: 5_000 }
    : { host, port, requeueing: "in order of settlement", patience: 0, timeout: 5_000 };
}

async function differenceIn(place: Place, operations: readonly Operation[]): Promise<Difference | undefined> {
  try {
    await run(place, operations);
    return undefined;
  } catch (error) {
    if (error instanceof Difference) return error;
    throw error;
  }
}
