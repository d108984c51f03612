// What libraries rarely send: no-wait, the channel's last queue, small frames, access.request, content too large,
// and what goes only to clients that announced it.
import { randomBytes } from "node:crypto";
import { decodeProperties, type FieldsInput, FrameType, METHODS, type MethodName } from "@amqp/codec";
import { describe, expect, it, onTestFinished } from "vitest";
import { AmqpSocket, type Handshake } from "../harness/socket.ts";
import { target } from "../harness/target.ts";
import { differs } from "./differences.ts";

const DECLARE = { passive: false, durable: false, exclusive: true, autoDelete: false, nowait: false, arguments: [] };
const CONSUME = { consumerTag: "t", noLocal: false, noAck: false, exclusive: false, nowait: false, arguments: [] };
const unused = (): string => `test-w-${randomBytes(8).toString("hex")}`;

async function open(how: Handshake = {}): Promise<AmqpSocket> {
  const socket = await AmqpSocket.open(await target(), how);
  onTestFinished(() => socket.destroy());
  await socket.channel();
  return socket;
}

async function declare(socket: AmqpSocket, fields: Partial<FieldsInput<"queue.declare">> = {}): Promise<string> {
  socket.send(1, "queue.declare", { ...DECLARE, queue: unused(), ...fields });
  return (await socket.expect("queue.declare-ok")).queue;
}

describe("no-wait", () => {
  it("is obeyed by declare, bind, consume, cancel, purge, delete and confirm.select: no answer, same effect", async () => {
    const socket = await open();
    const queue = unused();
    const exchange = unused();
    socket.send(1, "confirm.select", { nowait: true });
    const kind = { type: "fanout", passive: false, durable: false, autoDelete: true, internal: false };
    socket.send(1, "exchange.declare", { ...kind, exchange, nowait: true, arguments: [] });
    socket.send(1, "queue.declare", { ...DECLARE, queue, nowait: true });
    socket.send(1, "queue.bind", { queue, exchange, routingKey: "", nowait: true, arguments: [] });
    socket.send(1, "basic.consume", { ...CONSUME, queue, nowait: true });
    expect(await socket.collect(150)).toEqual([]);
    socket.publish(1, { exchange }, "hello");
    const kinds = [await socket.next(), await socket.next(), await socket.next(), await socket.next()].map(
      (received) => (received.kind === "method" ? received.method.name : received.kind),
    );
    expect(new Set(kinds)).toEqual(new Set(["basic.ack", "basic.deliver", "body", "header"]));
    socket.send(1, "basic.cancel", { consumerTag: "t", nowait: true });
    socket.send(1, "queue.purge", { queue, nowait: true });
    socket.send(1, "queue.delete", { queue, ifUnused: false, ifEmpty: false, nowait: true });
    expect(await socket.collect(150)).toEqual([]);
    socket.send(1, "queue.declare", { ...DECLARE, queue, passive: true });
    expect((await socket.expect("channel.close")).replyCode).toBe(404);
  });

  it("does not keep an error back", async () => {
    const socket = await open();
    socket.send(1, "queue.purge", { queue: "test-no-such-queue", nowait: true });
    expect(await socket.expect("channel.close")).toMatchObject({ replyCode: 404, classId: 50, methodId: 30 });
  });
});

describe("an empty queue name", () => {
  it("means the channel's last declared queue", async () => {
    const socket = await open();
    await declare(socket);
    const queue = await declare(socket);
    socket.publish(1, { routingKey: queue }, "a");
    socket.send(1, "basic.consume", { ...CONSUME, queue: "" });
    await socket.expect("basic.consume-ok");
    expect((await socket.expect("basic.deliver")).routingKey).toBe(queue);
    await socket.expectContent();
    socket.send(1, "basic.cancel", { consumerTag: "t", nowait: false });
    await socket.expect("basic.cancel-ok");
    socket.send(1, "queue.purge", { queue: "", nowait: false });
    expect(await socket.expect("queue.purge-ok")).toEqual({ messageCount: 0 });
    socket.send(1, "queue.delete", { queue: "", ifUnused: false, ifEmpty: false, nowait: false });
    await socket.expect("queue.delete-ok");
  });

  it("with an empty key binds under that queue's name", async () => {
    const socket = await open();
    const exchange = unused();
    const flags = { passive: false, durable: false, autoDelete: true, internal: false, nowait: false, arguments: [] };
    socket.send(1, "exchange.declare", { ...flags, exchange, type: "direct" });
    await socket.expect("exchange.declare-ok");
    const queue = await declare(socket);
    socket.send(1, "queue.bind", { queue: "", exchange, routingKey: "", nowait: false, arguments: [] });
    await socket.expect("queue.bind-ok");
    socket.send(1, "basic.consume", { ...CONSUME, queue });
    await socket.expect("basic.consume-ok");
    socket.publish(1, { exchange, routingKey: queue }, "a");
    expect((await socket.expect("basic.deliver")).routingKey).toBe(queue);
  });

  const bound = { queue: "", exchange: "x", routingKey: "k", arguments: [] } as const;
  it.each<[MethodName, (socket: AmqpSocket) => void]>([
    ["queue.bind", (socket) => socket.send(1, "queue.bind", { ...bound, nowait: false })],
    ["queue.unbind", (socket) => socket.send(1, "queue.unbind", bound)],
    ["queue.purge", (socket) => socket.send(1, "queue.purge", { queue: "", nowait: false })],
    [
      "queue.delete",
      (socket) => socket.send(1, "queue.delete", { queue: "", ifUnused: false, ifEmpty: false, nowait: false }),
    ],
    ["basic.get", (socket) => socket.send(1, "basic.get", { queue: "", noAck: true })],
    ["basic.consume", (socket) => socket.send(1, "basic.consume", { ...CONSUME, queue: "" })],
  ])("is refused with 404 by %s where none was declared", async (name, act) => {
    const socket = await open();
    act(socket);
    const { classId, methodId } = METHODS[name];
    const replyText = "NOT_FOUND - no previously declared queue";
    expect(await socket.expect("channel.close")).toEqual({ replyCode: 404, replyText, classId, methodId });
  });
});

describe("frames", () => {
  it.each([0, 1, 4_087, 4_088, 4_089, 8_176, 8_177, 100_000])("a body of %i octets in frames of 4096", async (size) => {
    const socket = await open({ frameMax: 4_096 });
    const queue = await declare(socket);
    const body = Buffer.alloc(size, "abc");
    socket.send(1, "basic.consume", { ...CONSUME, queue, noAck: true });
    await socket.expect("basic.consume-ok");
    socket.publish(1, { routingKey: queue }, body);
    await socket.expect("basic.deliver");
    const content = await socket.expectContent();
    expect(content.body.equals(body)).toBe(true);
    expect(content.frames.every((octets) => octets <= 4_096)).toBe(true);
  });

  it("a body may come in frames of any size, empty ones too", async () => {
    const socket = await open();
    const queue = await declare(socket);
    socket.send(1, "basic.publish", { exchange: "", routingKey: queue, mandatory: false, immediate: false });
    socket.frame(FrameType.HEADER, 1, Buffer.from("003c000000000000000000050000", "hex"));
    for (const piece of ["h", "", "ell", "o"]) socket.frame(FrameType.BODY, 1, Buffer.from(piece));
    socket.send(1, "basic.consume", { ...CONSUME, queue, noAck: true });
    await socket.expect("basic.consume-ok");
    await socket.expect("basic.deliver");
    expect((await socket.expectContent()).body.toString()).toBe("hello");
  });

  it("of two channels may be mixed", async () => {
    const socket = await open();
    const queue = await declare(socket);
    await socket.channel(2);
    const to = { exchange: "", routingKey: queue, mandatory: false, immediate: false };
    const header = Buffer.from("003c000000000000000000020000", "hex");
    socket.send(1, "basic.publish", to);
    socket.send(2, "basic.publish", to);
    socket.frame(FrameType.HEADER, 1, header);
    socket.frame(FrameType.HEADER, 2, header);
    socket.frame(FrameType.BODY, 1, Buffer.from("1"));
    socket.frame(FrameType.BODY, 2, Buffer.from("22"));
    socket.frame(FrameType.BODY, 1, Buffer.from("1"));
    socket.send(1, "basic.consume", { ...CONSUME, queue, noAck: true });
    await socket.expect("basic.consume-ok");
    const bodies: string[] = [];
    for (let i = 0; i < 2; i++) {
      await socket.expect("basic.deliver");
      bodies.push((await socket.expectContent()).body.toString());
    }
    expect(new Set(bodies)).toEqual(new Set(["11", "22"]));
  });

  it("carry the properties' octets through unchanged", async () => {
    const socket = await open();
    const queue = await declare(socket);
    socket.send(1, "basic.consume", { ...CONSUME, queue, noAck: true });
    await socket.expect("basic.consume-ok");
    socket.publish(1, { routingKey: queue }, "x", {
      deliveryMode: 1,
      priority: 255,
      timestamp: 2n ** 63n - 1n,
      appId: "a",
    });
    await socket.expect("basic.deliver");
    const { properties } = await socket.expectContent();
    expect(decodeProperties(properties)).toEqual({
      deliveryMode: 1,
      priority: 255,
      timestamp: 2n ** 63n - 1n,
      appId: "a",
    });
  });
});

describe("content too large", () => {
  it("is refused on the channel, and the connection goes on", async () => {
    const socket = await open();
    socket.send(1, "basic.publish", { exchange: "", routingKey: "x", mandatory: false, immediate: false });
    const limit = differs("content-too-large") ? 8 * 1_048_576 : 16 * 1_048_576;
    const header = Buffer.from("003c000000000000000000000000", "hex");
    header.writeBigUInt64BE(BigInt(limit + 1), 4);
    socket.frame(FrameType.HEADER, 1, header);
    if (differs("content-too-large")) {
      expect(await socket.expect("channel.close")).toMatchObject({ replyCode: 311, classId: 60, methodId: 40 });
    } else {
      for (let left = limit + 1; left > 0; left -= 131_064) {
        socket.frame(FrameType.BODY, 1, Buffer.alloc(Math.min(left, 131_064)));
      }
      const close = await socket.expect("channel.close");
      expect(close).toMatchObject({ replyCode: 406, classId: 60, methodId: 40 });
      expect(close.replyText).toBe(
        `PRECONDITION_FAILED - message size ${limit + 1} is larger than configured max size ${limit}`,
      );
    }
    socket.send(1, "channel.close-ok", {});
    await socket.channel(1);
  });
});

describe("basic.cancel from the server", () => {
  async function deleteUnder(how: Handshake): Promise<AmqpSocket> {
    const socket = await open(how);
    const queue = await declare(socket);
    socket.send(1, "basic.consume", { ...CONSUME, queue });
    await socket.expect("basic.consume-ok");
    await socket.channel(2);
    socket.send(2, "queue.delete", { queue, ifUnused: false, ifEmpty: false, nowait: false });
    return socket;
  }

  it("goes to a client that announced consumer_cancel_notify", async () => {
    const received = await (await deleteUnder({})).collect(300);
    const names = received.map((each) => (each.kind === "method" ? each.method.name : each.kind));
    expect(new Set(names)).toEqual(new Set(["basic.cancel", "queue.delete-ok"]));
  });

  it("does not go to one that did not", async () => {
    const received = await (await deleteUnder({ capabilities: {} })).collect(300);
    const names = received.map((each) => (each.kind === "method" ? each.method.name : each.kind));
    expect(names).toEqual(["queue.delete-ok"]);
  });
});

describe("what is answered for old clients", () => {
  it("access.request", async () => {
    const socket = await open();
    const fields = { realm: "/data", exclusive: false, passive: true, active: true, write: true, read: true };
    socket.send(1, "access.request", fields);
    await socket.expect("access.request-ok");
    await declare(socket);
  });

  it("a ticket in any method is ignored", async () => {
    await declare(await open(), { ticket: 101 });
  });

  it("confirm.select twice", async () => {
    const socket = await open();
    for (let i = 0; i < 2; i++) {
      socket.send(1, "confirm.select", { nowait: false });
      await socket.expect("confirm.select-ok");
    }
  });

  it("basic.cancel of nobody's tag", async () => {
    const socket = await open();
    socket.send(1, "basic.cancel", { consumerTag: "nobody", nowait: false });
    expect(await socket.expect("basic.cancel-ok")).toEqual({ consumerTag: "nobody" });
  });

  it("a user-id that is the login's own", async () => {
    const socket = await open();
    const queue = await declare(socket);
    socket.publish(1, { routingKey: queue, mandatory: true }, "x", { userId: "guest" });
    socket.send(1, "basic.qos", { prefetchSize: 0, prefetchCount: 0, global: false });
    await socket.expect("basic.qos-ok");
  });
});

describe("delivery tags", () => {
  it("0 without multiple is unknown", async () => {
    const socket = await open();
    socket.send(1, "basic.ack", { deliveryTag: 0, multiple: false });
    expect(await socket.expect("channel.close")).toEqual({
      replyCode: 406,
      replyText: "PRECONDITION_FAILED - unknown delivery tag 0",
      classId: 60,
      methodId: 80,
    });
  });

  it("of 64 bits are named exactly", async () => {
    const socket = await open();
    socket.send(1, "basic.ack", { deliveryTag: 2n ** 53n + 1n, multiple: false });
    const { replyText } = await socket.expect("channel.close");
    expect(replyText).toBe("PRECONDITION_FAILED - unknown delivery tag 9007199254740993");
  });
});
