// The log's standing message on three nats-servers stays where it is: where the log's first sequence moves, servers that come
// back lose some of what queues hold (docs/cluster.md).
import amqplib from "amqplib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { NatsCluster } from "./servers.ts";

const MESSAGES = 2_000;
let cluster: NatsCluster;
let gateways: readonly Gateway[];

beforeAll(async () => {
  cluster = await NatsCluster.start();
  const env = { NATS_URL: cluster.urls, AMQP_STREAM_REPLICAS: "3" };
  gateways = [await startGateway({ env }), await startGateway({ env })];
}, 60_000);
afterAll(async () => {
  await releaseAll();
  await cluster.stop();
});

interface State {
  readonly first_seq: number;
  readonly last_seq: number;
  readonly messages: number;
}

async function ask<T>(verb: string): Promise<T> {
  return (await cluster.connection.request(`$JS.API.${verb}`, "", { timeout: 5_000 })).json<T>();
}

async function log(): Promise<State> {
  return (await ask<{ readonly state: State }>("STREAM.INFO.AMQP")).state;
}

async function standing(): Promise<number> {
  const { num_pending: pending, num_ack_pending: held } =
    await ask<Record<string, number>>("CONSUMER.INFO.AMQP.$keeper");
  return (pending ?? 0) + (held ?? 0);
}

/** So many messages come and go, over some seconds. */
async function work(): Promise<void> {
  const connections = await Promise.all(gateways.map(({ url }) => amqplib.connect(url)));
  const [publisher, consumer] = await Promise.all(connections.map((connection) => connection.createConfirmChannel()));
  if (publisher === undefined || consumer === undefined) throw new Error("two gateways run");
  await publisher.assertQueue("work");
  let got = 0;
  await consumer.consume("work", (message) => {
    if (message === null) return;
    got++;
    consumer.ack(message);
  });
  for (let sent = 0; sent < MESSAGES; sent += 100) {
    for (let n = 0; n < 100; n++) publisher.sendToQueue("work", Buffer.from("x"));
    await publisher.waitForConfirms();
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  await expect.poll(() => got, { timeout: 20_000 }).toBe(MESSAGES);
  await Promise.all(connections.map((connection) => connection.close()));
}

it("stays where it is while messages come and go, and is not joined by others", async () => {
  await work();
  const before = await log();
  const stood = await standing();
  expect(stood).toBeGreaterThanOrEqual(1);
  await work();
  await expect.poll(async () => (await log()).messages, { timeout: 10_000 }).toBe(stood);
  const after = await log();
  expect(after.first_seq).toBe(before.first_seq);
  expect(after.last_seq).toBeGreaterThanOrEqual(before.last_seq + MESSAGES);
  expect(await standing()).toBe(stood);
}, 90_000);

it("is made again where somebody took it, or its consumer, away", async () => {
  await ask("CONSUMER.DELETE.AMQP.$keeper");
  await work();
  await expect.poll(standing, { timeout: 10_000 }).toBeGreaterThanOrEqual(1);
}, 90_000);
