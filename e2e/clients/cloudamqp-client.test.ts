// @cloudamqp/amqp-client, unchanged: its channels, and its session's reconnecting.
import { AMQPClient, type AMQPError, type AMQPMessage, AMQPSession } from "@cloudamqp/amqp-client";
import { afterEach, expect, it } from "vitest";
import { startProxy, type TcpProxy } from "../harness/proxy.ts";
import { target } from "../harness/target.ts";
import { exchangeName, queueName, until } from "./session.ts";

const open: AMQPClient[] = [];
let proxy: TcpProxy | undefined;

async function connect(): Promise<AMQPClient> {
  const client = new AMQPClient((await target()).url);
  client.onerror = () => undefined;
  await client.connect();
  open.push(client);
  return client;
}

afterEach(async () => {
  for (const client of open.splice(0)) if (!client.closed) await client.close();
  await proxy?.close();
  proxy = undefined;
});

it("declares, publishes with confirms, and gets", async () => {
  const channel = await (await connect()).channel();
  const [queue, exchange] = [queueName(), exchangeName()];
  expect(await channel.queueDeclare(queue)).toEqual({ name: queue, messageCount: 0, consumerCount: 0 });
  await channel.exchangeDeclare(exchange, "topic", {
    durable: true,
    autoDelete: false,
    internal: false,
    passive: false,
  });
  await channel.queueBind(queue, exchange, "a.#");
  await channel.confirmSelect();
  expect(await channel.basicPublish(exchange, "a.b", "hello", { contentType: "text/plain", headers: { n: 1 } })).toBe(
    1,
  );
  expect(await channel.basicPublish(exchange, "b", "nowhere")).toBe(2);
  const message = await channel.basicGet(queue, { noAck: false });
  if (message === null) throw new Error("the queue is empty");
  expect(message.bodyString()).toBe("hello");
  expect(message.properties).toMatchObject({ contentType: "text/plain", headers: { n: 1 } });
  await message.ack();
  expect(await channel.basicGet(queue)).toBeNull();
  expect(await channel.queueDelete(queue)).toEqual({ messageCount: 0 });
});

it("sees what was returned", async () => {
  const channel = await (await connect()).channel();
  const returned: AMQPMessage[] = [];
  channel.onReturn = (message) => returned.push(message);
  await channel.confirmSelect();
  await channel.basicPublish("", queueName(), "back", { correlationId: "c" }, true);
  await until(() => returned.length === 1);
  expect(returned[0]).toMatchObject({ replyCode: 312, replyText: "NO_ROUTE", properties: { correlationId: "c" } });
  expect(returned[0]?.bodyString()).toBe("back");
});

it("consumes with qos: acks, nacks, rejects, cancels", async () => {
  const channel = await (await connect()).channel();
  const queue = queueName();
  await channel.queueDeclare(queue);
  await channel.basicQos(1);
  const seen: string[] = [];
  const consumer = await channel.basicConsume(queue, { noAck: false }, async (message) => {
    seen.push(`${message.bodyString()}${message.redelivered ? " again" : ""}`);
    if (message.bodyString() === "nack") await message.nack(!message.redelivered);
    else if (message.bodyString() === "reject") await message.reject(false);
    else await message.ack();
  });
  await channel.confirmSelect();
  for (const body of ["ack", "nack", "reject"]) await channel.basicPublish("", queue, body);
  await until(() => seen.length === 4);
  expect(seen.filter((text) => text !== "reject")).toEqual(["ack", "nack", "nack again"]);
  expect(seen).toContain("reject");
  await consumer.cancel();
  await channel.basicPublish("", queue, "left");
  expect(await channel.queuePurge(queue)).toEqual({ messageCount: 1 });
});

it("learns why its channel was closed, and goes on with another", async () => {
  const client = await connect();
  const queue = queueName();
  const failing = await client.channel();
  const error = await failing.queueDeclare(queue, { passive: true }).catch((reason: AMQPError) => reason);
  expect((error as Error).message).toContain(`NOT_FOUND - no queue '${queue}' in vhost '/'`);
  await (await client.channel()).queueDeclare(queue);
});

it("comes back after its socket was cut, with its subscription", async () => {
  const { host, port } = await target();
  proxy = await startProxy(host, port);
  const session = await AMQPSession.connect(`amqp://guest:guest@${proxy.host}:${proxy.port}`, {
    reconnectInterval: 50,
  });
  const queue = await session.queue(queueName(), { durable: true });
  const seen: Set<string> = new Set();
  await queue.subscribe({ noAck: false }, async (message) => {
    seen.add(message.bodyString() ?? "");
    await message.ack();
  });
  const publisher = await (await connect()).channel();
  await publisher.confirmSelect();
  for (let i = 0; i < 20; i++) {
    if (i % 10 === 5) proxy.cut();
    await publisher.basicPublish("", queue.name, `${i}`);
  }
  await until(() => seen.size === 20, 10_000);
  expect(proxy.accepted).toBeGreaterThan(1);
  await session.stop();
});
