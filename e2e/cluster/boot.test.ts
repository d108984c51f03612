// A gateway that is started while the servers have no leader waits for one, as its clients would, and serves then.
import { setTimeout as sleep } from "node:timers/promises";
import amqplib from "amqplib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { NatsCluster } from "./servers.ts";

let cluster: NatsCluster;

beforeAll(async () => {
  cluster = await NatsCluster.start();
}, 60_000);
afterAll(async () => {
  await releaseAll();
  await cluster.stop();
});

it("waits for the servers' majority, and has what was there before", async () => {
  const env = { NATS_URL: cluster.urls, AMQP_STREAM_REPLICAS: "3" };
  const before = await startGateway({ env });
  const connection = await amqplib.connect(before.url);
  const channel = await connection.createConfirmChannel();
  await channel.assertQueue("kept");
  channel.sendToQueue("kept", Buffer.from("x"));
  await channel.waitForConfirms();
  await connection.close();
  await before.stop();

  const [one, two] = cluster.servers;
  if (one === undefined || two === undefined) throw new Error("three servers run");
  await Promise.all([one.kill(), two.kill()]);
  const booting = startGateway({ env, timeout: 60_000 });
  await sleep(8_000);
  await Promise.all([one.start(), two.start()]);
  const after = await booting;
  const again = await amqplib.connect(after.url);
  const reader = await again.createChannel();
  expect(await reader.get("kept", { noAck: true })).toMatchObject({ content: Buffer.from("x") });
  await again.close();
}, 120_000);
