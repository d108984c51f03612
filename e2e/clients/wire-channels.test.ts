// Channels, frame by frame: opening twice or not at all, frames in flight, reuse, wrong frames in wrong places.
import { FrameType, frame, METHODS, type MethodName } from "@amqp/codec";
import { describe, expect, it, onTestFinished } from "vitest";
import { AmqpSocket } from "../harness/socket.ts";
import { target } from "../harness/target.ts";
import { differs } from "./differences.ts";

const GET = { queue: "test-no-such-queue", noAck: true } as const;
const DECLARE = { passive: false, durable: false, exclusive: true, autoDelete: false, nowait: false, arguments: [] };
const CLOSE = { replyCode: 200, replyText: "", classId: 0, methodId: 0 } as const;

async function open(): Promise<AmqpSocket> {
  const socket = await AmqpSocket.open(await target());
  onTestFinished(() => socket.destroy());
  await socket.channel();
  return socket;
}

async function expectClose(socket: AmqpSocket, replyCode: number, text: string, method?: MethodName): Promise<void> {
  const { classId, methodId } = method === undefined ? { classId: 0, methodId: 0 } : METHODS[method];
  expect(await socket.expect("connection.close")).toEqual({ replyCode, replyText: text, classId, methodId });
  socket.send(0, "connection.close-ok", {});
  await socket.expectClosed();
}

describe("a channel exception", () => {
  it("ignores the frames in flight until close-ok, then the number can be opened again", async () => {
    const socket = await open();
    socket.send(1, "basic.get", GET);
    socket.send(1, "basic.get", GET);
    socket.publish(1, { routingKey: "x", mandatory: true }, "ignored");
    socket.send(1, "queue.declare", { ...DECLARE, queue: `test-ignored-${process.pid}` });
    expect(await socket.expect("channel.close")).toEqual({
      replyCode: 404,
      replyText: "NOT_FOUND - no queue 'test-no-such-queue' in vhost '/'",
      classId: 60,
      methodId: 70,
    });
    expect(await socket.collect(150)).toEqual([]);
    socket.send(1, "channel.close-ok", {});
    await socket.channel(1);
    socket.send(1, "queue.declare", { ...DECLARE, passive: true, queue: `test-ignored-${process.pid}` });
    expect((await socket.expect("channel.close")).replyCode).toBe(404);
  });

  it("that meets the client's own channel.close: it is answered, and the number free after both", async () => {
    const socket = await open();
    socket.send(1, "basic.get", GET);
    socket.send(1, "channel.close", CLOSE);
    await socket.expect("channel.close");
    await socket.expect("channel.close-ok");
    socket.send(1, "channel.close-ok", {});
    await socket.channel(1);
  });

  it("leaves the other channels alone", async () => {
    const socket = await open();
    await socket.channel(2);
    socket.send(1, "basic.get", GET);
    await socket.expect("channel.close");
    socket.send(2, "queue.declare", { ...DECLARE, queue: "" });
    await socket.expect("queue.declare-ok");
  });

  it("drops the content that was in the middle of coming", async () => {
    const socket = await open();
    socket.send(1, "basic.get", GET);
    socket.send(1, "basic.publish", { exchange: "", routingKey: "x", mandatory: true, immediate: false });
    socket.frame(FrameType.HEADER, 1, Buffer.from("003c000000000000000000050000", "hex"));
    await socket.expect("channel.close");
    socket.frame(FrameType.BODY, 1, Buffer.alloc(5));
    socket.send(1, "channel.close-ok", {});
    await socket.channel(1);
    socket.send(1, "basic.qos", { prefetchSize: 0, prefetchCount: 1, global: false });
    await socket.expect("basic.qos-ok");
  });
});

describe("channels close and open", () => {
  it("one number 300 times", async () => {
    const socket = await open();
    for (let i = 0; i < 300; i++) {
      socket.send(1, "channel.close", CLOSE);
      await socket.expect("channel.close-ok");
      await socket.channel(1);
    }
  });

  it("the highest number that was agreed", async () => {
    const socket = await open();
    await socket.channel(2_047);
  });
});

describe("504", () => {
  it("a channel opened twice", async () => {
    const socket = await open();
    socket.send(1, "channel.open", {});
    await expectClose(socket, 504, "CHANNEL_ERROR - second 'channel.open' seen", "channel.open");
  });

  it("a channel that is not open: a method", async () => {
    const socket = await open();
    socket.send(5, "basic.get", GET);
    await expectClose(socket, 504, "CHANNEL_ERROR - expected 'channel.open'", "basic.get");
  });

  it("a channel that is not open: a publish", async () => {
    const socket = await open();
    socket.publish(5, { routingKey: "x" }, "body");
    await expectClose(socket, 504, "CHANNEL_ERROR - expected 'channel.open'", "basic.publish");
  });

  it("a channel opened again before its close-ok", async () => {
    const socket = await open();
    socket.send(1, "basic.get", GET);
    await socket.expect("channel.close");
    socket.send(1, "channel.open", {});
    await expectClose(socket, 504, "CHANNEL_ERROR - second 'channel.open' seen", "channel.open");
  });

  it("a channel's method on channel 0", async () => {
    const socket = await open();
    socket.send(0, "basic.get", GET);
    await expectClose(socket, 504, "CHANNEL_ERROR - unexpected method in connection state running", "basic.get");
  });

  it("connection.open a second time", async () => {
    const socket = await open();
    socket.send(0, "connection.open", { virtualHost: "/" });
    await expectClose(socket, 504, "CHANNEL_ERROR - unexpected method in connection state running", "connection.open");
  });
});

describe("503", () => {
  it("a connection's method on a channel", async () => {
    const socket = await open();
    socket.send(1, "connection.open", { virtualHost: "/" });
    await expectClose(socket, 503, "COMMAND_INVALID - unimplemented method", "connection.open");
  });

  it("a method that only a server sends", async () => {
    const socket = await open();
    socket.send(1, "queue.declare-ok", { queue: "x", messageCount: 0, consumerCount: 0 });
    await expectClose(socket, 503, "COMMAND_INVALID - unimplemented method", "queue.declare-ok");
  });

  it("a method that nobody knows", async () => {
    const socket = await open();
    socket.frame(FrameType.METHOD, 1, Buffer.from([0, 60, 0, 99]));
    if (differs("syntax-errors"))
      expect(await socket.expect("connection.close")).toMatchObject({ replyCode: 503, classId: 60, methodId: 99 });
    else await socket.expectClosed();
  });
});

describe("501 and 502", () => {
  const OPEN = Buffer.from([0, 20, 0, 10, 0]);

  it("a frame that does not end in 206", async () => {
    const socket = await open();
    const octets = frame(FrameType.METHOD, 2, OPEN);
    octets[octets.length - 1] = 0;
    socket.write(octets);
    const { replyCode, replyText } = await socket.expect("connection.close");
    expect(replyCode).toBe(501);
    expect(replyText).toMatch(/^FRAME_ERROR - /);
  });

  it("a frame of an unknown type", async () => {
    const socket = await open();
    socket.write(Buffer.from([7, 0, 1, 0, 0, 0, 1, 0, 0xce]));
    expect((await socket.expect("connection.close")).replyCode).toBe(501);
  });

  it("a frame larger than agreed, on its header", async () => {
    const socket = await open();
    socket.write(Buffer.from([3, 0, 1, 0x7f, 0xff, 0xff, 0xff]));
    expect((await socket.expect("connection.close")).replyCode).toBe(501);
  });

  it("a heartbeat frame with a payload", async () => {
    const socket = await open();
    socket.write(Buffer.from([8, 0, 0, 0, 0, 0, 1, 0, 0xce]));
    expect((await socket.expect("connection.close")).replyCode).toBe(501);
  });

  it("a method frame too short to name one", async () => {
    const socket = await open();
    socket.frame(FrameType.METHOD, 1, Buffer.from([0, 60, 0]));
    expect((await socket.expect("connection.close")).replyCode).toBe(501);
  });

  it.each([
    ["cut short", "0032000a0000054142"],
    ["with octets too many", "003c000a00000000000100ffff"],
    ["with a table longer than the frame", "0032000a000001710000000010016153"],
  ])("arguments %s", async (_, payload) => {
    const socket = await open();
    socket.frame(FrameType.METHOD, 1, Buffer.from(payload, "hex"));
    const { replyCode } = await socket.expect("connection.close");
    expect(replyCode).toBe(differs("syntax-errors") ? 502 : 501);
  });
});

describe("505", () => {
  const HEADER_OF_5 = Buffer.from("003c000000000000000000050000", "hex");
  const noHeader = "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead";
  const noBody = "UNEXPECTED_FRAME - expected content body, got non content body frame instead";
  const noMethod = "UNEXPECTED_FRAME - expected method frame, got non method frame instead";
  const startPublish = (socket: AmqpSocket) =>
    socket.send(1, "basic.publish", { exchange: "", routingKey: "x", mandatory: false, immediate: false });

  it("a method where a content header is due", async () => {
    const socket = await open();
    startPublish(socket);
    socket.send(1, "basic.get", GET);
    await expectClose(socket, 505, noHeader, "basic.publish");
  });

  it("a body where a content header is due", async () => {
    const socket = await open();
    startPublish(socket);
    socket.frame(FrameType.BODY, 1, Buffer.alloc(1));
    await expectClose(socket, 505, noHeader, "basic.publish");
  });

  it("a content header of another class", async () => {
    const socket = await open();
    startPublish(socket);
    socket.frame(FrameType.HEADER, 1, Buffer.from("0032000000000000000000000000", "hex"));
    const text = "UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead";
    await expectClose(socket, 505, text, "basic.publish");
  });

  it.each(["method", "header"])("a %s where a body is due", async (what) => {
    const socket = await open();
    startPublish(socket);
    socket.frame(FrameType.HEADER, 1, HEADER_OF_5);
    if (what === "method") socket.send(1, "basic.get", GET);
    else socket.frame(FrameType.HEADER, 1, HEADER_OF_5);
    await expectClose(socket, 505, noBody, "basic.publish");
  });

  it.each([
    ["content header", FrameType.HEADER, HEADER_OF_5],
    ["body", FrameType.BODY, Buffer.alloc(1)],
  ] as const)("a %s without a publish", async (_, type, payload) => {
    const socket = await open();
    socket.frame(type, 1, payload);
    await expectClose(socket, 505, noMethod);
  });

  it("a content frame on channel 0", async () => {
    const socket = await open();
    socket.frame(FrameType.BODY, 0, Buffer.alloc(1));
    expect((await socket.expect("connection.close")).replyCode).toBe(505);
  });

  it("a body beyond the size in its header", async () => {
    const socket = await open();
    startPublish(socket);
    socket.frame(FrameType.HEADER, 1, HEADER_OF_5);
    socket.frame(FrameType.BODY, 1, Buffer.alloc(6));
    if (differs("body-too-long")) expect((await socket.expect("connection.close")).replyCode).toBe(505);
    else await socket.channel(2);
  });

  it("a method before the connection is open", async () => {
    const socket = AmqpSocket.connect(await target());
    onTestFinished(() => socket.destroy());
    await socket.login();
    socket.tune();
    socket.send(1, "channel.open", {});
    expect((await socket.expect("connection.close")).replyCode).toBe(505);
  });
});

describe("malformed properties", () => {
  it.each([
    ["cut short", "003c000000000000000000008000204100"],
    ["with octets too many", "003c000000000000000000000000ff"],
  ])("%s", async (_, header) => {
    const socket = await open();
    socket.send(1, "basic.publish", { exchange: "", routingKey: "x", mandatory: false, immediate: false });
    socket.frame(FrameType.HEADER, 1, Buffer.from(header, "hex"));
    const { replyCode } = await socket.expect("connection.close");
    expect(replyCode).toBe(differs("malformed-properties") ? 502 : 541);
  });
});
