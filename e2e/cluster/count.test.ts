// What declare-ok says of a queue's messages on three nats-servers, right after they were confirmed, and that no consumer of
// the log is made to know it: the end of each costs the servers' copies their agreement where one comes back (docs/cluster.md).
import amqplib, { type ChannelModel, type ConfirmChannel } from "amqplib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { NatsCluster } from "./servers.ts";

let cluster: NatsCluster;
let connection: ChannelModel;
let channel: ConfirmChannel;
const made: string[] = [];

beforeAll(async () => {
  cluster = await NatsCluster.start();
  const gateway = await startGateway({ env: { NATS_URL: cluster.urls, AMQP_STREAM_REPLICAS: "3" } });
  cluster.connection.subscribe("$JS.EVENT.ADVISORY.CONSUMER.CREATED.AMQP.*", {
    callback: (_, { subject }) => {
      made.push(subject.slice(subject.lastIndexOf(".") + 1));
    },
  });
  connection = await amqplib.connect(gateway.url);
  channel = await connection.createConfirmChannel();
  await channel.assertExchange("tidings", "topic");
}, 60_000);
afterAll(async () => {
  await connection.close();
  await releaseAll();
  await cluster.stop();
});

async function publish(exchange: string, key: string, messages: number): Promise<void> {
  for (let left = messages; left > 0; left--) channel.publish(exchange, key, Buffer.from("x"));
  await channel.waitForConfirms();
}

async function count(queue: string): Promise<number> {
  return (await channel.checkQueue(queue)).messageCount;
}

it("is exact right after the confirms: few, many, beside another queue, and whoever leads", async () => {
  await channel.assertQueue("many");
  await channel.assertQueue("other");
  await channel.bindQueue("many", "tidings", "a.*");
  await channel.bindQueue("other", "tidings", "#");
  let messages = 0;
  for (let round = 0; round < 60; round++) {
    const more = round % 3 === 0 ? 1 : 10;
    await publish("tidings", "a.b", more);
    await publish("", "many", 1);
    messages += more + 1;
    expect(await count("many")).toBe(messages);
    expect((await channel.assertQueue("many")).messageCount).toBe(messages);
    if (round % 20 === 10) await cluster.stepDown("AMQP", "many");
  }
  expect(await channel.purgeQueue("many")).toMatchObject({ messageCount: messages });
  expect(await count("many")).toBe(0);
}, 60_000);

it("leaves out what came before a binding and after its end", async () => {
  await channel.assertQueue("late");
  await publish("", "late", 3);
  await publish("tidings", "late.1", 30);
  await channel.bindQueue("late", "tidings", "late.#");
  expect(await count("late")).toBe(3);
  await publish("tidings", "late.2", 100);
  expect(await count("late")).toBe(103);
  await channel.unbindQueue("late", "tidings", "late.#");
  await publish("tidings", "late.3", 30);
  await publish("", "late", 1);
  expect(await count("late")).toBe(104);
}, 60_000);

it("takes no consumer of the log", () => {
  expect(made).toContain("many");
  expect(made.filter((name) => name.startsWith("$count"))).toEqual([]);
});
