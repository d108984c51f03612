// A gateway, and two, on three real nats-servers with three replicas of everything, under load, while each server in
// turn is killed and started again. Servers are picked by what they lead: the log, the bucket, a queue's cursor, or
// by whom a gateway is connected to. What is asserted of the load is in load.ts; docs/cluster.md tells what was measured.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { Load } from "./load.ts";
import { NatsCluster } from "./servers.ts";

const STREAM = "AMQP";
const BUCKET = "KV_amqp";
/** The longest pause of anything, milliseconds. */
const STALL = 20_000;
/** How long a server stays dead: an election takes 5 to 9 s. */
const DEAD = 11_000;

let cluster: NatsCluster;
const gateways: Gateway[] = [];

beforeAll(async () => {
  cluster = await NatsCluster.start();
});

afterEach(async ({ task }) => {
  // What the gateways said is how one learns why.
  if (task.result?.state === "fail")
    for (const [at, { lines }] of gateways.entries())
      for (const line of lines) console.log(`gateway ${at}: ${JSON.stringify(line)}`);
  await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
});

afterAll(async () => {
  await cluster.stop();
  await releaseAll();
});

async function gateway(): Promise<Gateway> {
  const started = await startGateway({ env: { NATS_URL: cluster.urls, AMQP_STREAM_REPLICAS: "3" } });
  gateways.push(started);
  return started;
}

/** Kills a server, leaves it dead for a while, starts it again; every load must have gone on meanwhile. */
async function killAndRestart(victim: string | undefined, loads: readonly Load[]): Promise<void> {
  if (victim === undefined) throw new Error("nobody leads");
  for (const load of loads) load.killing();
  await cluster.server(victim).kill();
  await sleep(DEAD);
  for (const load of loads) expect(await load.ping()).toBeLessThan(STALL);
  await cluster.server(victim).start();
  await cluster.whole([STREAM, BUCKET]);
  for (const load of loads) {
    const { publish, consume, topology } = load.stalls();
    expect.soft(publish, "publishes stood still").toBeLessThan(STALL);
    expect.soft(consume, "deliveries stood still").toBeLessThan(STALL);
    expect.soft(topology, "the topology stood still").toBeLessThan(STALL);
  }
}

/** Ends the load: all that was confirmed came, nothing is left, nothing happened that must not. */
async function settle(load: Load): Promise<void> {
  await load.quiet();
  const { seen } = load;
  const isDone = async (): Promise<boolean> => [...seen.confirmed].every((id) => seen.delivered.has(id));
  await cluster.until("all that was confirmed was delivered", isDone);
  await cluster.until("the queue is empty", async () => (await load.count()) === 0);
  expect(seen.faults).toEqual([]);
  await load.close();
}

describe("three nats-servers", () => {
  it("keep the log, the bucket and every queue three times, and lose and stop nothing when one dies", async () => {
    const load = await Load.start((await gateway()).url, "one");
    expect((await cluster.stream(STREAM)).replicas).toBe(3);
    expect((await cluster.stream(BUCKET)).replicas).toBe(3);
    expect((await cluster.consumer(STREAM, load.queue)).replicas).toBe(3);
    await killAndRestart((await cluster.stream(STREAM)).leader, [load]);
    await settle(load);
  }, 120_000);

  it("carry two gateways over the death of every leader", async () => {
    const loads = await Promise.all(
      [await gateway(), await gateway()].map(({ url }, at) => Load.start(url, `two-${at}`)),
    );
    const [first] = loads;
    if (first === undefined) throw new Error("two loads were started");
    await killAndRestart((await cluster.stream(BUCKET)).leader, loads);
    await killAndRestart((await cluster.consumer(STREAM, first.queue)).leader, loads);
    await Promise.all(loads.map(settle));
  }, 180_000);
});
