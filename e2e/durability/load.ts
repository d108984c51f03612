// Publishing and reading by the thousand over a raw socket: what the durability tests put in and look for again.
// Separate from the tests because each of them needs the same three things: many confirmed messages, all that a queue
// still holds, and a gateway together with the nats-server that it started.
import { readFileSync } from "node:fs";
import type { PropertiesInput } from "@amqp/codec";
import type { Gateway } from "../harness/gateway.ts";
import { AmqpSocket } from "../harness/socket.ts";

/** Where a gateway listens. */
export function addressOf(gateway: { readonly port: number }): { host: string; port: number } {
  return { host: "127.0.0.1", port: gateway.port };
}

/** A connection with channel 1 open and confirms on. */
export async function openPublisher(gateway: { readonly port: number }): Promise<AmqpSocket> {
  const socket = await AmqpSocket.open(addressOf(gateway));
  await socket.channel(1);
  socket.send(1, "confirm.select", {});
  await socket.expect("confirm.select-ok");
  return socket;
}

/** Declares a queue; durable unless said otherwise. */
export async function declare(
  socket: AmqpSocket,
  queue: string,
  { durable = true, exclusive = false } = {},
): Promise<void> {
  socket.send(1, "queue.declare", { queue, durable, exclusive });
  await socket.expect("queue.declare-ok");
}

/** Publishes texts to a queue, as many at a time as the gateway takes, and waits until each is confirmed. */
export async function publishAll(
  socket: AmqpSocket,
  queue: string,
  texts: readonly string[],
  properties: PropertiesInput = {},
): Promise<void> {
  const AT_ONCE = 1_000;
  for (let start = 0; start < texts.length; start += AT_ONCE) {
    const part = texts.slice(start, start + AT_ONCE);
    for (const text of part) socket.publish(1, { routingKey: queue }, text, properties);
    for (let left = part.length; left > 0; left--) await socket.expect("basic.ack", 30_000);
  }
}

/** What a get brought. */
export interface Got {
  readonly text: string;
  readonly tag: bigint;
  readonly redelivered: boolean;
}

/** One message, or undefined where none is ready. */
export async function getOne(socket: AmqpSocket, queue: string, noAck = true): Promise<Got | undefined> {
  socket.send(1, "basic.get", { queue, noAck });
  const answer = await socket.next(10_000);
  if (answer.kind !== "method") throw new Error(`expected an answer to basic.get, got ${answer.kind}`);
  if (answer.method.name !== "basic.get-ok") return undefined;
  const { body } = await socket.expectContent();
  const { deliveryTag, redelivered } = answer.method.fields;
  return { text: body.toString(), tag: deliveryTag, redelivered };
}

/** What a consumer is given until nothing came for `quiet` milliseconds; acknowledged as it comes. */
export async function consumeAll(gateway: { readonly port: number }, queue: string, quiet = 1_500): Promise<Got[]> {
  const socket = await AmqpSocket.open(addressOf(gateway));
  await socket.channel(1);
  socket.send(1, "basic.qos", { prefetchCount: 2_000 });
  await socket.expect("basic.qos-ok");
  socket.send(1, "basic.consume", { queue, consumerTag: "all" });
  await socket.expect("basic.consume-ok");
  const got: Got[] = [];
  for (;;) {
    const delivery = await socket.expect("basic.deliver", quiet).catch((error: Error) => {
      if (error.message.startsWith("nothing came")) return undefined;
      throw error;
    });
    if (delivery === undefined) break;
    const { body } = await socket.expectContent();
    got.push({ text: body.toString(), tag: delivery.deliveryTag, redelivered: delivery.redelivered });
    socket.send(1, "basic.ack", { deliveryTag: delivery.deliveryTag });
  }
  socket.send(1, "channel.close", {});
  await socket.expect("channel.close-ok");
  socket.destroy();
  return got;
}

/** The process of the embedded nats-server, as the gateway has logged it last. */
export function embeddedPid(gateway: Gateway): number {
  const line = gateway.lines.findLast(({ msg }) => msg.startsWith("embedded nats-server runs"));
  if (typeof line?.pid !== "number") throw new Error("the gateway has logged no embedded nats-server");
  return line.pid;
}

/** Whether a process runs. One that has ended and that nobody waits for (its parent was killed) does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return process.platform !== "linux";
  }
}

/** `count` texts. */
export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, number) => `${prefix}-${number}`);
}
