// Whatever octets come, in whatever pieces: a proper close or a bounded wait, and other connections unharmed. Foreign
// protocols, lengths that lie, tables without end, more channels than there are, handshakes that stop half way.
// design §9; AMQP 4.2.
import { connect } from "node:net";
import { type FieldsOf, FrameType, frame, PROTOCOL_HEADER } from "@amqp/codec";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { AmqpSocket, methodOf } from "../harness/socket.ts";
import { type Canary, startCanary } from "./canary.ts";
import { growthDuring, residentMiB } from "./memory.ts";

let gateway: Gateway;
let at: { host: string; port: number };
let canary: Canary;

beforeAll(async () => {
  gateway = await startGateway();
  at = { host: "127.0.0.1", port: gateway.port };
});
beforeEach(async () => {
  canary = await startCanary(at);
});
afterEach(async () => {
  const { rounds, slowest } = await canary.end();
  expect(rounds).toBeGreaterThan(0);
  expect(slowest).toBeLessThan(5_000);
});
afterAll(releaseAll);

/** Opens, writes, and waits for the broker to hang up; what it said before is returned. */
async function answerTo(octets: Uint8Array, patience = 3_000): Promise<Buffer> {
  const socket = connect(at.port, at.host);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => undefined);
  socket.write(octets);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not closed within ${patience} ms`)), patience);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
  }).finally(() => socket.destroy());
  return Buffer.concat(chunks);
}

/** What the broker closes an open connection with when it gets these octets. */
async function closeOn(octets: Uint8Array): Promise<FieldsOf<"connection.close">> {
  const socket = await AmqpSocket.open(at);
  await socket.channel(1);
  socket.write(octets);
  const close = await socket.expect("connection.close");
  // Read only where the octets before it were a whole frame: else the broker waits for it, five seconds.
  socket.send(0, "connection.close-ok", {});
  await socket.expectClosed(10_000);
  return close;
}

/** A frame whose header says `size`, whatever follows. */
function lying(type: number, channel: number, size: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(7);
  header.writeUInt8(type, 0);
  header.writeUInt16BE(channel, 1);
  header.writeUInt32BE(size, 3);
  return Buffer.concat([header, payload]);
}

describe("a foreign protocol", () => {
  it.each([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")],
    ["TLS", Buffer.from("16030100ba010000b60303", "hex")],
    ["AMQP 1.0", Buffer.from("AMQP\0\x01\0\0", "latin1")],
    ["AMQP 0-10", Buffer.from("AMQP\x01\x01\0\x0a", "latin1")],
    ["SSH", Buffer.from("SSH-2.0-OpenSSH_9.2\r\n")],
    ["zeros", Buffer.alloc(64)],
  ])("%s is answered with our header, and hung up on", async (_, octets) => {
    expect(await answerTo(octets)).toEqual(Buffer.from(PROTOCOL_HEADER));
  });
});

describe("octets after the handshake", () => {
  it.each([
    ["a frame type that is none", frame(7 as FrameType, 0, new Uint8Array(0)), 501],
    ["a frame that ends in another octet", Buffer.from([1, 0, 1, 0, 0, 0, 4, 0, 20, 0, 10, 0]), 501],
    ["a frame of 2^31 octets", lying(FrameType.METHOD, 1, 0x8000_0000, Buffer.alloc(16)), 501],
    ["a frame of 2^32 - 1 octets", lying(FrameType.BODY, 1, 0xffff_ffff, Buffer.alloc(16)), 501],
    ["a frame one octet above what was agreed", lying(FrameType.METHOD, 1, 131_072 - 7, Buffer.alloc(131_066)), 501],
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n"), 501],
    ["a method of three octets", frame(FrameType.METHOD, 1, Buffer.from([0, 60, 0])), 501],
    ["an empty method", frame(FrameType.METHOD, 1, new Uint8Array(0)), 501],
    ["a method of no known class", frame(FrameType.METHOD, 1, Buffer.from([0, 99, 0, 1])), 503],
    ["a method of no known number", frame(FrameType.METHOD, 1, Buffer.from([0, 60, 0, 99])), 503],
    ["arguments cut short", frame(FrameType.METHOD, 1, Buffer.from([0, 50, 0, 10, 0, 0, 5, 65, 66])), 502],
    ["arguments and more", frame(FrameType.METHOD, 1, Buffer.from([0, 20, 0, 20, 1, 9, 9])), 502],
    ["a string longer than its frame", frame(FrameType.METHOD, 1, Buffer.from([0, 60, 0, 70, 0, 0, 255, 65, 0])), 502],
    [
      "a table longer than its frame",
      frame(FrameType.METHOD, 1, declareWith(Buffer.from([0xff, 0xff, 0xff, 0xff]))),
      502,
    ],
    ["a field of no known type", frame(FrameType.METHOD, 1, declareWith(Buffer.from([0, 0, 0, 3, 1, 97, 0x7a]))), 502],
    ["a content header without a publish", frame(FrameType.HEADER, 1, Buffer.alloc(14)), 505],
    ["a body without a publish", frame(FrameType.BODY, 1, Buffer.from("x")), 505],
  ])("%s", async (_, octets, code) => {
    const close = await closeOn(octets);
    // Where RabbitMQ says 501 for what cannot be decoded, 502 is AMQP's own word: either is a proper close.
    const codes: readonly number[] = code === 502 || code === 503 ? [501, 502, 503, 540] : [code];
    expect(codes).toContain(close.replyCode);
    expect(close.replyText).toMatch(/^[A-Z_]+ - ./);
  });

  it("of 10,000 nested tables", async () => {
    let table = Buffer.alloc(0);
    for (let depth = 0; depth < 10_000; depth++) {
      const size = Buffer.alloc(4);
      size.writeUInt32BE(table.length);
      table = Buffer.concat([Buffer.from([1, 97, 70]), size, table]);
    }
    const size = Buffer.alloc(4);
    size.writeUInt32BE(table.length);
    const close = await closeOn(frame(FrameType.METHOD, 1, declareWith(Buffer.concat([size, table]))));
    expect([501, 502]).toContain(close.replyCode);
  });

  it("of 10,000 nested tables in a message's properties", async () => {
    let table = Buffer.alloc(0);
    for (let depth = 0; depth < 10_000; depth++) {
      const size = Buffer.alloc(4);
      size.writeUInt32BE(table.length);
      table = Buffer.concat([Buffer.from([1, 97, 70]), size, table]);
    }
    const head = Buffer.alloc(14);
    head.writeUInt16BE(60, 0);
    head.writeUInt16BE(0x2000, 12);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(table.length);
    const publish = methodOf(1, "basic.publish", { routingKey: "nobody" });
    const header = frame(FrameType.HEADER, 1, Buffer.concat([head, size, table]));
    const socket = await AmqpSocket.open(at);
    await socket.channel(1);
    socket.write(Buffer.concat([publish, header]));
    const answer = await socket.next();
    expect(answer.kind === "method" && answer.method.name).toMatch(/^(channel|connection)\.close$/);
    socket.destroy();
  });

  it("one at a time are the same as all at once", async () => {
    const socket = connect(at.port, at.host);
    socket.setNoDelay(true);
    const conversation = Buffer.concat([
      Buffer.from(PROTOCOL_HEADER),
      methodOf(0, "connection.start-ok", { mechanism: "PLAIN", response: "\0guest\0guest", locale: "en_US" }),
      methodOf(0, "connection.tune-ok", { channelMax: 2047, frameMax: 131_072 }),
      methodOf(0, "connection.open", { virtualHost: "/" }),
      methodOf(1, "channel.open", {}),
      methodOf(1, "queue.declare", { exclusive: true }),
      methodOf(0, "connection.close", { replyCode: 200 }),
    ]);
    let answer = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      answer = Buffer.concat([answer, chunk]);
    });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    for (const octet of conversation) {
      socket.write(Buffer.of(octet));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await closed;
    expect(answer.subarray(-12).equals(methodOf(0, "connection.close-ok", {}))).toBe(true);
  });
});

/** queue.declare of a server-named queue with these octets as its arguments. */
function declareWith(table: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([0, 50, 0, 10, 0, 0, 0, 0]), table]);
}

describe("a handshake", () => {
  it("that stops after the protocol header is given up, the socket too", async () => {
    const said = await answerTo(Buffer.from(PROTOCOL_HEADER), 20_000);
    expect(said.length).toBeGreaterThan(0);
  }, 30_000);

  it("that never begins is given up", async () => {
    await answerTo(new Uint8Array(0), 20_000);
  }, 30_000);

  it("that stops in the middle of a frame is given up", async () => {
    await answerTo(Buffer.concat([Buffer.from(PROTOCOL_HEADER), Buffer.from([1, 0, 0, 0, 0, 1, 0, 0, 10])]), 20_000);
  }, 30_000);

  it("with a frame above 8 KiB is refused before it is read", async () => {
    const socket = AmqpSocket.connect(at);
    socket.write(Buffer.concat([Buffer.from(PROTOCOL_HEADER), lying(FrameType.METHOD, 0, 1 << 20, Buffer.alloc(64))]));
    await socket.expect("connection.start");
    expect((await socket.expect("connection.close")).replyCode).toBe(501);
    socket.destroy();
  });
});

describe("too much of something", () => {
  it("is refused at the channel above the agreed number, after 2,047 were given", async () => {
    const socket = await AmqpSocket.open(at);
    for (let number = 1; number <= 0xffff; number++) socket.send(number, "channel.open", {});
    for (let number = 1; number <= 2_047; number++) await socket.expect("channel.open-ok");
    expect((await socket.expect("connection.close")).replyCode).toBe(504);
    socket.destroy();
  });

  it("as 300 sockets that come and go costs nothing that lasts", async () => {
    const before = residentMiB(gateway.pid);
    for (let round = 0; round < 3; round++) {
      const sockets = Array.from({ length: 100 }, () => AmqpSocket.connect(at));
      for (const socket of sockets) socket.write(Buffer.from(PROTOCOL_HEADER));
      await Promise.all(sockets.map((socket) => socket.expect("connection.start", 10_000)));
      for (const socket of sockets) socket.destroy();
    }
    expect(residentMiB(gateway.pid) - before).toBeLessThan(100);
  });

  it("as commands that are never waited for is read no faster than it is answered", async () => {
    const socket = await AmqpSocket.open(at);
    await socket.channel(1);
    const growth = await growthDuring(gateway.pid, async () => {
      const one = methodOf(1, "queue.declare", { queue: "one-and-only", exclusive: true });
      for (let burst = 0; burst < 5; burst++) socket.write(Buffer.concat(Array.from({ length: 1_000 }, () => one)));
      for (let answers = 0; answers < 5_000; answers++) await socket.expect("queue.declare-ok", 30_000);
    });
    expect(growth).toBeLessThan(150);
    socket.destroy();
  }, 120_000);
});
