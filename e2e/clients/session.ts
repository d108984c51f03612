// amqplib connections and names for one test: opened by it, closed and deleted after it.
// Every amqplib test uses these, so that a shared reference broker is left as it was found. Separate from refusal.ts,
// which is about errors only.
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { type Channel, type ChannelModel, type ConfirmChannel, connect as connectTo, type Message } from "amqplib";
import { afterAll, afterEach } from "vitest";
import { target } from "../harness/target.ts";

const connections: Set<ChannelModel> = new Set();
const queues: Set<string> = new Set();
const exchanges: Set<string> = new Set();

/** A connection to the target, closed after the test. */
export async function connect(): Promise<ChannelModel> {
  const { url } = await target();
  const connection = await connectTo(url, { noDelay: true });
  connection.on("error", () => undefined); // tests that expect one listen too
  connection.on("close", () => connections.delete(connection));
  connections.add(connection);
  return connection;
}

/** Drops the connection's socket without a word, as a crashed client does. */
export function dropSocket(connection: ChannelModel): void {
  connections.delete(connection);
  (connection.connection as unknown as { readonly stream: Socket }).stream.resetAndDestroy();
}

/** A channel on that connection, else on one of its own. */
export async function openChannel(connection?: ChannelModel): Promise<Channel> {
  return quiet(await (connection ?? (await connect())).createChannel());
}

/** A channel with publisher confirms. */
export async function openConfirmChannel(connection?: ChannelModel): Promise<ConfirmChannel> {
  return quiet(await (connection ?? (await connect())).createConfirmChannel());
}

function quiet<C extends Channel>(channel: C): C {
  channel.on("error", () => undefined);
  return channel;
}

/** An unused name for a queue; whatever queue has it is deleted after the test. */
export function queueName(): string {
  const name = `test-q-${randomBytes(8).toString("hex")}`;
  queues.add(name);
  return name;
}

/** An unused name for an exchange; whatever exchange has it is deleted after the test. */
export function exchangeName(): string {
  const name = `test-x-${randomBytes(8).toString("hex")}`;
  exchanges.add(name);
  return name;
}

/** Declares a durable, shared queue of a fresh name. */
export async function newQueue(channel: Channel): Promise<string> {
  const { queue } = await channel.assertQueue(queueName());
  return queue;
}

/** Declares a durable exchange of a fresh name. */
export async function newExchange(channel: Channel, kind: "direct" | "fanout" | "topic"): Promise<string> {
  const { exchange } = await channel.assertExchange(exchangeName(), kind);
  return exchange;
}

/** Publishes texts to a queue by its name and waits for the confirms. */
export async function send(channel: ConfirmChannel, queue: string, ...texts: string[]): Promise<void> {
  await publish(channel, "", queue, ...texts);
}

/** Publishes texts to an exchange and waits for the confirms. */
export async function publish(
  channel: ConfirmChannel,
  exchange: string,
  key: string,
  ...texts: string[]
): Promise<void> {
  for (const text of texts) channel.publish(exchange, key, Buffer.from(text));
  await channel.waitForConfirms();
}

/** One message by basic.get, which must be there. */
export async function get(channel: Channel, queue: string): Promise<Message> {
  const message = await channel.get(queue);
  if (message === false) throw new Error(`queue ${queue} is empty`);
  return message;
}

/** Gets and acknowledges all that is ready, as texts. */
export async function drain(channel: Channel, queue: string): Promise<string[]> {
  const texts: string[] = [];
  for (;;) {
    const message = await channel.get(queue, { noAck: true });
    if (message === false) return texts;
    texts.push(message.content.toString());
  }
}

/** Waits until the condition holds (a returned value that is not false); fails after `timeout` milliseconds. */
export async function until<T>(condition: () => T | false | Promise<T | false>, timeout = 5_000): Promise<T> {
  const end = Date.now() + timeout;
  for (;;) {
    const value = await condition();
    if (value !== false) return value;
    if (Date.now() > end) throw new Error(`not within ${timeout} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Long enough for what must not come. */
export async function pause(milliseconds = 150): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

// Deletes what the tests leave: one connection for the whole file.
let janitor: Promise<ChannelModel> | undefined;

afterEach(async () => {
  await Promise.all([...connections].map((connection) => connection.close().catch(() => undefined)));
  if (queues.size + exchanges.size === 0) return;
  janitor ??= target().then(({ url }) => connectTo(url, { noDelay: true }));
  const channel = await (await janitor).createChannel();
  for (const queue of queues) await channel.deleteQueue(queue);
  for (const exchange of exchanges) await channel.deleteExchange(exchange);
  queues.clear();
  exchanges.clear();
  await channel.close();
});

afterAll(async () => {
  await (await janitor)?.close();
});
