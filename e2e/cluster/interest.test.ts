// What a bind waits for on three nats-servers: every one that is in touch knows it, or what is published right after its
// answer could be in no log when another server leads (packages/broker/src/nats/interest.ts). One server stands still here.
import { setTimeout as sleep } from "node:timers/promises";
import amqplib, { type Channel, type ChannelModel } from "amqplib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { type ClusterServer, NatsCluster } from "./servers.ts";

const STREAM = "AMQP";
const BUCKET = "KV_amqp";
const QUEUE = "known";
const EXCHANGE = "news";

let cluster: NatsCluster;
let connection: ChannelModel;
let channel: Channel;

beforeAll(async () => {
  cluster = await NatsCluster.start();
  const home = cluster.servers[0]?.url ?? "";
  const gateway = await startGateway({ env: { NATS_URL: home, AMQP_STREAM_REPLICAS: "3" } });
  connection = await amqplib.connect(gateway.url);
  channel = await connection.createChannel();
  await channel.assertExchange(EXCHANGE, "topic");
  await channel.assertQueue(QUEUE);
}, 60_000);
afterAll(async () => {
  await connection.close();
  await releaseAll();
  await cluster.stop();
});

/** A server that leads nothing that a bind needs, and that the gateway is not connected to. */
async function bystander(): Promise<ClusterServer> {
  const [home] = cluster.servers;
  const meta = await home?.metaLeader();
  const found = cluster.servers.find((server) => server !== home && server.name !== meta);
  if (found === undefined) throw new Error("three servers, and none to spare");
  const leads = async (): Promise<boolean> => {
    if ((await cluster.stream(STREAM)).leader === found.name) await cluster.stepDown(STREAM);
    else if ((await cluster.stream(BUCKET)).leader === found.name) await cluster.stepDown(BUCKET);
    else if ((await cluster.consumer(STREAM, QUEUE)).leader === found.name) await cluster.stepDown(STREAM, QUEUE);
    else return true;
    return false;
  };
  await cluster.until("it leads nothing", leads);
  await cluster.whole([STREAM, BUCKET]);
  return found;
}

/** Milliseconds that a bind took. */
async function bind(key: string): Promise<number> {
  const began = performance.now();
  await channel.bindQueue(QUEUE, EXCHANGE, key);
  return performance.now() - began;
}

it("a bind waits for a server that is slow, and not for one that is away", async () => {
  await bind("before");
  const slow = await bystander();
  slow.freeze();
  try {
    let isAnswered = false;
    const slowly = bind("slow").then(() => {
      isAnswered = true;
    });
    await sleep(1_500);
    expect(isAnswered).toBe(false);
    slow.resume();
    await slowly;

    const away = await bystander();
    expect(away.name).toBe(slow.name);
    away.freeze();
    // Until it counts as away, and an election where the bus meant it to lead what shows the bind's way.
    expect(await bind("away")).toBeGreaterThan(1_000);
  } finally {
    slow.resume();
  }
  await cluster.whole([STREAM, BUCKET]);
  await cluster.until("it is kept by three", async () => (await cluster.consumer(STREAM, QUEUE)).replicas === 3);
}, 90_000);
