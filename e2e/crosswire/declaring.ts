// The declarations that several refused clients begin with, and contents that are announced and never come.
// Used by not-implemented.ts, wrong.ts and connection-refusals.ts; separate because a case should say only what is wrong
// with it.
import { FrameType } from "@amqp/codec";
import type { AmqpSocket } from "../harness/socket.ts";
import type { Scene } from "./refused.ts";

/** Declares an auto-delete queue of a fresh name. */
export async function newQueue({ socket, name }: Scene, options: { exclusive?: boolean } = {}): Promise<string> {
  const queue = name();
  socket.send(1, "queue.declare", { queue, autoDelete: true, ...options });
  await socket.expect("queue.declare-ok");
  return queue;
}

/** Declares an exchange of a fresh name. */
export async function newExchange(
  { socket, name }: Scene,
  type: string,
  options: { internal?: boolean } = {},
): Promise<string> {
  const exchange = name();
  socket.send(1, "exchange.declare", { exchange, type, ...options });
  await socket.expect("exchange.declare-ok");
  return exchange;
}

/** Consumes as `t`. */
export async function consume(socket: AmqpSocket, queue: string): Promise<void> {
  socket.send(1, "basic.consume", { queue, consumerTag: "t" });
  await socket.expect("basic.consume-ok");
}

/** The content header of a publish, and nothing of the body that it announces. */
export function header(socket: AmqpSocket, channel: number, bodySize: number): void {
  socket.send(channel, "basic.publish", { exchange: "", routingKey: "nobody" });
  const payload = Buffer.alloc(14);
  payload.writeUInt16BE(60, 0);
  payload.writeBigUInt64BE(BigInt(bodySize), 4);
  socket.frame(FrameType.HEADER, channel, payload);
}

/** Announced bodies that never come, on this many channels. */
export async function announce(socket: AmqpSocket, channels: number, bodySize: number): Promise<void> {
  for (let channel = 1; channel <= channels; channel++) await socket.channel(channel);
  for (let channel = 1; channel <= channels; channel++) header(socket, channel, bodySize);
}
