// The handshake, frame by frame: headers, login, tune, vhost, heartbeats, close.
// Several tests at a time: a broker lets a peer that it refuses, or that is silent, wait for seconds.
import { encodeTable, FrameType, fromPlain, PROTOCOL_HEADER, toPlain } from "@amqp/codec";
import { afterAll, describe, expect, it } from "vitest";
import { AmqpSocket, type Handshake } from "../harness/socket.ts";
import { target } from "../harness/target.ts";
import { differs } from "./differences.ts";

const sockets: AmqpSocket[] = [];

afterAll(() => {
  for (const socket of sockets) socket.destroy();
});

async function connect(): Promise<AmqpSocket> {
  const socket = AmqpSocket.connect(await target());
  sockets.push(socket);
  return socket;
}

async function open(how: Handshake = {}): Promise<AmqpSocket> {
  const socket = await AmqpSocket.open(await target(), how);
  sockets.push(socket);
  return socket;
}

describe.concurrent("the protocol header", () => {
  it.each([
    ["AMQP 0-10", "AMQP\x01\x01\x00\x0a"],
    ["AMQP 1.0", "AMQP\x00\x01\x00\x00"],
    ["AMQP 0-8", "AMQP\x01\x01\x08\x00"],
    ["HTTP", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ])("of %s is answered with a supported one, and the socket is dropped", async (_, header) => {
    const socket = await connect();
    socket.write(Buffer.from(header, "latin1"));
    const answer = differs("foreign-header")
      ? Buffer.from(PROTOCOL_HEADER)
      : Buffer.from("AMQP\x03\x01\x00\x00", "latin1");
    expect(await socket.next()).toEqual({ kind: "protocol-header", octets: answer });
    await socket.expectClosed();
  });

  it("of another 0-9 revision is answered with AMQP 0 0 9 1", async () => {
    const socket = await connect();
    socket.write(Buffer.from("AMQP\x00\x00\x09\x02", "latin1"));
    expect(await socket.next()).toEqual({ kind: "protocol-header", octets: Buffer.from(PROTOCOL_HEADER) });
    await socket.expectClosed();
  });

  it("may come octet by octet", async () => {
    const socket = await connect();
    for (const octet of PROTOCOL_HEADER) {
      socket.write(Buffer.from([octet]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await socket.expect("connection.start")).toMatchObject({ versionMajor: 0, versionMinor: 9 });
  });
});

describe.concurrent("connection.start", () => {
  it("offers PLAIN and AMQPLAIN, en_US and capabilities", async () => {
    const socket = await connect();
    const { mechanisms, locales, serverProperties } = await socket.start();
    expect(mechanisms.toString().split(" ")).toEqual(expect.arrayContaining(["PLAIN", "AMQPLAIN"]));
    expect(locales.toString().split(" ")).toContain("en_US");
    expect(toPlain(serverProperties)).toMatchObject({ capabilities: { "basic.nack": true, publisher_confirms: true } });
  });
});

describe.concurrent("login", () => {
  // AMQPLAIN's response is a table without its length in front.
  const amqplain = (login: string, password: string) =>
    encodeTable(fromPlain({ LOGIN: login, PASSWORD: password })).subarray(4);

  it("takes PLAIN", async () => {
    await (await connect()).login({ response: "\0guest\0guest" });
  });

  it("takes AMQPLAIN", async () => {
    await (await connect()).login({ mechanism: "AMQPLAIN", response: amqplain("guest", "guest") });
  });

  it.each([
    ["an unknown mechanism", { mechanism: "NONSENSE", response: "x" }],
    ["a PLAIN response without its zeros", { response: "garbage" }],
    ["an AMQPLAIN response that is no table", { mechanism: "AMQPLAIN", response: "zzz" }],
  ])("refuses %s, and drops the socket", async (_, how) => {
    const socket = await connect();
    await socket.start(how);
    for (const received of await socket.expectClosed(10_000)) {
      expect(received).toMatchObject({ method: { name: "connection.close" } });
    }
  });
});

describe.concurrent("connection.tune", () => {
  it("offers channel-max 2047, frame-max 131072 and heartbeat 60", async () => {
    expect(await (await connect()).login()).toEqual({ channelMax: 2047, frameMax: 131_072, heartbeat: 60 });
  });

  it.each([
    ["channel-max 1", { channelMax: 1 }],
    ["frame-max 4096", { frameMax: 4_096 }],
    ["frame-max 8192", { frameMax: 8_192 }],
    ["heartbeat 0", { heartbeat: 0 }],
    ["heartbeat 65535", { heartbeat: 65_535 }],
  ])("takes %s", async (_, how) => {
    const socket = await open(how);
    await socket.channel();
  });

  it.each([
    ["channel-max above the offer", { channelMax: 2_048 }],
    ["channel-max 0, which counts as above", { channelMax: 0 }],
    ["frame-max above the offer", { frameMax: 131_073 }],
    ["frame-max 0, which counts as above", { frameMax: 0 }],
    ["frame-max below 4096", { frameMax: 4_095 }],
  ])("refuses %s", async (_, how) => {
    const socket = await connect();
    await socket.login();
    socket.tune(how);
    if (differs("tune-refusal")) {
      const { replyCode, replyText } = await socket.expect("connection.close");
      expect(replyCode).toBe(530);
      expect(replyText).toMatch(/^NOT_ALLOWED - .*(channel.max|frame.max)/);
      socket.send(0, "connection.close-ok", {});
    }
    await socket.expectClosed(10_000);
  });
});

describe.concurrent("connection.open", () => {
  it("refuses another vhost than / with 530, naming it", async () => {
    const socket = await connect();
    await socket.login();
    socket.tune();
    socket.send(0, "connection.open", { virtualHost: "no-such" });
    const { replyText, ...rest } = await socket.expect("connection.close");
    expect(rest).toEqual({ replyCode: 530, classId: 10, methodId: 40 });
    const words = "NOT_ALLOWED - vhost no-such not found";
    if (differs("refusal-remedies")) expect(replyText.startsWith(words), replyText).toBe(true);
    else expect(replyText).toBe(words);
    socket.send(0, "connection.close-ok", {});
    await socket.expectClosed();
  });

  it("takes the empty name where there is but one vhost", async () => {
    const socket = await connect();
    await socket.login();
    socket.tune();
    socket.send(0, "connection.open", { virtualHost: "" });
    if (differs("empty-vhost")) await socket.expect("connection.open-ok");
    else expect((await socket.expect("connection.close")).replyText).toBe("NOT_ALLOWED - vhost  not found");
  });
});

describe.concurrent("connection.close", () => {
  it("by the client is answered", async () => {
    const socket = await open();
    socket.send(0, "connection.close", { replyCode: 200, replyText: "bye", classId: 0, methodId: 0 });
    await socket.expect("connection.close-ok");
  });

  it("by the server: what comes after is ignored, close-ok ends it", async () => {
    const socket = await open();
    await socket.channel();
    socket.send(7, "queue.purge", { queue: "x", nowait: false });
    expect((await socket.expect("connection.close")).replyCode).toBe(504);
    socket.send(1, "channel.close", { replyCode: 200, replyText: "", classId: 0, methodId: 0 });
    socket.send(0, "connection.close-ok", {});
    expect(await socket.expectClosed()).toEqual([]);
  });

  it("from both sides at a time ends with close-ok", async () => {
    const socket = await open();
    socket.send(7, "queue.purge", { queue: "x", nowait: false });
    socket.send(0, "connection.close", { replyCode: 200, replyText: "", classId: 0, methodId: 0 });
    await socket.expect("connection.close");
    socket.send(0, "connection.close-ok", {});
    await socket.expectClosed();
  });
});

describe.concurrent("heartbeats", () => {
  it("come from the server within each interval", async () => {
    const socket = await open({ heartbeat: 1 });
    const beat = setInterval(() => socket.frame(FrameType.HEARTBEAT, 0, Buffer.alloc(0)), 400);
    const received = await socket.collect(3_500); // longer than a silent peer is borne
    clearInterval(beat);
    expect(received.length).toBeGreaterThanOrEqual(3);
    expect(received.every(({ kind }) => kind === "heartbeat")).toBe(true);
  });

  it("any frame counts as a sign of life", async () => {
    const socket = await open({ heartbeat: 1 });
    await socket.channel();
    const beat = setInterval(() => socket.send(1, "channel.flow", { active: true }), 400);
    const received = await socket.collect(3_500);
    clearInterval(beat);
    expect(received.some(({ kind }) => kind === "closed")).toBe(false);
  });

  it("a silent peer is dropped after two intervals", async () => {
    const socket = await open({ heartbeat: 1 });
    const since = Date.now();
    await socket.expectClosed(8_000);
    expect(Date.now() - since).toBeGreaterThan(1_500);
    expect(Date.now() - since).toBeLessThan(5_000);
  });

  it("are off at interval 0", async () => {
    const socket = await open({ heartbeat: 0 });
    expect(await socket.collect(2_500)).toEqual([]);
  });
});
