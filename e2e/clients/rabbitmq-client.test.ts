// rabbitmq-client, unchanged: its Connection, Publisher, Consumer and RPC client, and its reconnecting.
import { Connection, type ConnectionOptions, ConsumerStatus, type ReturnedMessage } from "rabbitmq-client";
import { afterEach, expect, it } from "vitest";
import { startProxy, type TcpProxy } from "../harness/proxy.ts";
import { target } from "../harness/target.ts";
import { differs } from "./differences.ts";
import { exchangeName, pause, queueName, until } from "./session.ts";

const open: Connection[] = [];
let proxy: TcpProxy | undefined;

async function connect(options: ConnectionOptions = {}): Promise<Connection> {
  const { host, port } = await target();
  const connection = new Connection({
    hostname: host,
    port,
    username: "guest",
    password: "guest",
    retryLow: 20,
    ...options,
  });
  connection.on("error", () => undefined);
  open.push(connection);
  await connection.onConnect(5_000);
  return connection;
}

afterEach(async () => {
  for (const connection of open.splice(0)) {
    await Promise.race([connection.close(), pause(2_000)]); // close waits for channels that a failed test left open
    connection.unsafeDestroy();
  }
  await proxy?.close();
  proxy = undefined;
});

it("declares, publishes with confirms, and gets", async () => {
  const connection = await connect();
  const [queue, exchange] = [queueName(), exchangeName()];
  await connection.queueDeclare({ queue, durable: true });
  await connection.exchangeDeclare({ exchange, type: "topic", durable: true });
  await connection.queueBind({ queue, exchange, routingKey: "a.*" });
  const publisher = connection.createPublisher({ confirm: true, maxAttempts: 1 });
  await publisher.send({ exchange, routingKey: "a.b", contentType: "text/plain", correlationId: "c" }, "hello");
  await publisher.send({ exchange, routingKey: "b" }, "nowhere");
  await publisher.close();
  const message = await connection.basicGet({ queue, noAck: true });
  expect(message).toMatchObject({ body: "hello", routingKey: "a.b", correlationId: "c", messageCount: 0 });
  expect(await connection.basicGet({ queue, noAck: true })).toBeUndefined();
});

it("reports a mandatory message that came back", async () => {
  const connection = await connect();
  const publisher = connection.createPublisher({ confirm: true });
  const returned: ReturnedMessage[] = [];
  publisher.on("basic.return", (message) => returned.push(message));
  await publisher.send({ routingKey: queueName(), mandatory: true }, { some: "json" });
  await until(() => returned.length > 0);
  expect(returned).toMatchObject([{ replyCode: 312, replyText: "NO_ROUTE", body: { some: "json" } }]);
  await publisher.close();
});

it("consumes with qos: acks, requeues, drops", async () => {
  const connection = await connect();
  const queue = queueName();
  const seen: string[] = [];
  const consumer = connection.createConsumer(
    { queue, queueOptions: { durable: true }, qos: { prefetchCount: 2 } },
    (message) => {
      seen.push(`${message.body}${message.redelivered ? " again" : ""}`);
      if (message.body === "requeue" && !message.redelivered) return ConsumerStatus.REQUEUE;
      return message.body === "drop" ? ConsumerStatus.DROP : ConsumerStatus.ACK;
    },
  );
  await new Promise((resolve) => consumer.once("ready", resolve));
  const publisher = connection.createPublisher({ confirm: true });
  for (const body of ["ack", "drop", "requeue"]) await publisher.send(queue, body);
  await until(() => seen.length === 4);
  expect(seen).toEqual(["ack", "drop", "requeue", "requeue again"]);
  await consumer.close();
  await publisher.close();
  expect((await connection.queueDeclare({ queue, passive: true })).messageCount).toBe(0);
});

it("cancels, and what it held is there again", async () => {
  const connection = await connect();
  const queue = queueName();
  await connection.queueDeclare({ queue, durable: true });
  const channel = await connection.acquire();
  const bodies: unknown[] = [];
  await channel.basicConsume({ queue, consumerTag: "mine" }, (message) => bodies.push(message.body));
  await channel.confirmSelect();
  await channel.basicPublish({ routingKey: queue }, "held");
  await until(() => bodies.length === 1);
  await channel.basicCancel({ consumerTag: "mine" });
  await channel.close();
  const again = await connection.basicGet({ queue, noAck: true });
  expect(again).toMatchObject({ body: "held", redelivered: true });
});

it("calls over its RPC client, which wants direct reply-to", async () => {
  const connection = await connect();
  const queue = queueName();
  const server = connection.createConsumer({ queue, queueOptions: { durable: true } }, async (message, reply) => {
    await reply(`${message.body}!`);
  });
  await new Promise((resolve) => server.once("ready", resolve));
  const client = connection.createRPCClient({ confirm: true, timeout: 5_000 });
  const calling = client.send(queue, "hello");
  if (differs("direct-reply-to")) await expect(calling).rejects.toThrow(/NOT_IMPLEMENTED - .*exclusive/);
  else expect((await calling).body).toBe("hello!");
  await client.close();
  await server.close();
});

it("comes back after its socket was cut, with consumer and publisher, and loses nothing confirmed", async () => {
  const { host, port } = await target();
  proxy = await startProxy(host, port);
  const connection = await connect({ hostname: proxy.host, port: proxy.port });
  const queue = queueName();
  const seen: Set<unknown> = new Set();
  const consumer = connection.createConsumer({ queue, queueOptions: { durable: true } }, (message) => {
    seen.add(message.body);
  });
  await new Promise((resolve) => consumer.once("ready", resolve));
  const publisher = connection.createPublisher({ confirm: true, maxAttempts: 10 });
  for (let i = 0; i < 30; i++) {
    if (i % 10 === 5) proxy.cut();
    await publisher.send(queue, `${i}`);
  }
  await until(() => seen.size === 30, 10_000);
  expect(proxy.accepted).toBeGreaterThan(1);
  await consumer.close();
  await publisher.close();
});
