// The codec against the clients' own, on the same octets: what a server does most (decode a publish and an ack, split
// frames) and what it writes most (a delivery, a confirm).
// amqplib and rabbitmq-client keep theirs in files that are reached by path; amqp-client's view is a subpath of its own.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { CommandAssembler, decodeMethod, encodeMethod, FrameDecoder, frame, Writer } from "@amqp/codec";
import { type Figure, nanoseconds } from "./measure.ts";

const require = createRequire(import.meta.url);
const NOWHERE = { write: (): boolean => true, cork(): void {}, uncork(): void {} };
const CHUNK = 64;

interface AmqplibDefs {
  decode(id: number, octets: Buffer): object;
  encodeMethod(id: number, channel: number, fields: object): Buffer;
  readonly BasicPublish: number;
  readonly BasicAck: number;
  readonly BasicDeliver: number;
}
interface RabbitmqCodec {
  readonly Cmd: { readonly BasicAck: number };
  readonly FrameType: { readonly METHOD: number };
  encodeFrame(data: object, maxSize: number): Buffer;
}
interface CloudamqpFrames {
  readonly Writer: new (options: {
    readonly bufferSize: number;
    readonly type: number;
    readonly channel: number;
    readonly frameSize: number;
    readonly classId: number;
    readonly method: number;
  }) => { writeUint64(value: number): void; writeUint8(value: number): void };
}

export async function measureCodec(): Promise<Figure[]> {
  const properties = Buffer.from([0x10, 0, 2]);
  const body = Buffer.alloc(1024, "x");
  const publish = encodeMethod("basic.publish", {
    exchange: "logs",
    routingKey: "kern.critical.disk",
    mandatory: false,
    immediate: false,
  });
  const ack = encodeMethod("basic.ack", { deliveryTag: 12_345n, multiple: false });
  const header = Buffer.concat([Buffer.from([0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]), properties]);
  const message = Buffer.concat([frame(1, 1, publish), frame(2, 1, header), frame(3, 1, body)]);
  const chunk = Buffer.concat(Array.from({ length: CHUNK }, () => message));
  const decoder = new FrameDecoder({ maxFrameSize: 131_072 });
  const assembler = new CommandAssembler();
  const writer = new Writer();
  const deliver = { consumerTag: "ctag", deliveryTag: 12_345, redelivered: false, exchange: "logs", routingKey: "a.b" };
  const figures: Figure[] = [];
  const add = (name: string, call: () => unknown, per = 1): void => {
    figures.push({ name, nanoseconds: nanoseconds(call) / per });
  };

  add("decode basic.publish: @amqp/codec", () => decodeMethod(publish));
  add("decode basic.ack: @amqp/codec", () => decodeMethod(ack));
  add(
    "a whole publish of 1 KiB, frames to command: @amqp/codec",
    () => decoder.push(chunk, (type, _, payload) => void assembler.process(type, payload)),
    CHUNK,
  );
  add("write basic.deliver with 1 KiB: @amqp/codec", () => {
    writer.deliver(1, "ctag", 12_345, false, "logs", "a.b", properties, body, 131_072);
    return writer.flush(NOWHERE);
  });
  add("write basic.ack: @amqp/codec", () => {
    writer.ack(1, 12_345, false);
    return writer.flush(NOWHERE);
  });

  const amqplib = require(join(dirname(require.resolve("amqplib")), "lib/defs.js")) as AmqplibDefs;
  add("decode basic.publish: amqplib", () => amqplib.decode(amqplib.BasicPublish, publish.subarray(4)));
  add("decode basic.ack: amqplib", () => amqplib.decode(amqplib.BasicAck, ack.subarray(4)));
  add("write basic.deliver, method frame alone: amqplib", () => amqplib.encodeMethod(amqplib.BasicDeliver, 1, deliver));
  add("write basic.ack: amqplib", () =>
    amqplib.encodeMethod(amqplib.BasicAck, 1, { deliveryTag: 12_345, multiple: false }),
  );

  const rabbitmq = require(join(dirname(require.resolve("rabbitmq-client")), "codec.js")) as RabbitmqCodec;
  const params = { deliveryTag: 12_345, multiple: false };
  const ackFrame = { type: rabbitmq.FrameType.METHOD, channelId: 1, methodId: rabbitmq.Cmd.BasicAck, params };
  add("write basic.ack: rabbitmq-client", () => rabbitmq.encodeFrame(ackFrame, 131_072));

  const cloudamqp: CloudamqpFrames = await import("@cloudamqp/amqp-client/amqp-frame");
  add("write basic.ack: @cloudamqp/amqp-client", () => {
    const octets = new cloudamqp.Writer({
      bufferSize: 21,
      type: 1,
      channel: 1,
      frameSize: 13,
      classId: 60,
      method: 80,
    });
    octets.writeUint64(12_345);
    octets.writeUint8(0);
    octets.writeUint8(206);
    return octets;
  });
  return figures;
}
