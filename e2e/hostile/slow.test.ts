// Peers that do not read, or hardly write: what waits for them stays on the bus or in their own socket, the gateway's
// memory stays flat, and other connections do not notice. design §6, §9. AMQP_HOSTILE_MIB makes it as large as one likes.
import { connect, type Socket } from "node:net";
import { PROTOCOL_HEADER } from "@amqp/codec";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPublisher } from "../durability/load.ts";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { AmqpSocket, methodOf } from "../harness/socket.ts";
import { startCanary } from "./canary.ts";
import { growthDuring } from "./memory.ts";

const MIB = Number(process.env.AMQP_HOSTILE_MIB ?? 200);
const BODY = Buffer.alloc(64 * 1024, "x");
const MESSAGES = MIB * 16;

let gateway: Gateway;
let at: { host: string; port: number };

beforeAll(async () => {
  gateway = await startGateway();
  at = { host: "127.0.0.1", port: gateway.port };
});
afterAll(releaseAll);

/** A connection that says all it has to say at once and then stops reading. */
async function deafClient(...frames: readonly Uint8Array[]): Promise<Socket> {
  const socket = connect(at.port, at.host);
  socket.on("error", () => undefined);
  socket.write(
    Buffer.concat([
      Buffer.from(PROTOCOL_HEADER),
      methodOf(0, "connection.start-ok", { mechanism: "PLAIN", response: "\0guest\0guest", locale: "en_US" }),
      methodOf(0, "connection.tune-ok", { channelMax: 2047, frameMax: 131_072 }),
      methodOf(0, "connection.open", { virtualHost: "/" }),
      methodOf(1, "channel.open", {}),
      ...frames,
    ]),
  );
  // The first octets are read, so that the handshake goes on; then no more.
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  return socket;
}

async function fill(queue: string): Promise<AmqpSocket> {
  const socket = await openPublisher(gateway);
  socket.send(1, "queue.declare", { queue, durable: true });
  await socket.expect("queue.declare-ok");
  for (let sent = 0; sent < MESSAGES; sent += 100) {
    for (let one = 0; one < 100; one++) socket.publish(1, { routingKey: queue }, BODY);
    for (let one = 0; one < 100; one++) await socket.expect("basic.ack", 30_000);
  }
  return socket;
}

async function ready(socket: AmqpSocket, queue: string): Promise<number> {
  socket.send(1, "queue.declare", { queue, durable: true, passive: true });
  return (await socket.expect("queue.declare-ok")).messageCount;
}

describe("a reader that does not read", () => {
  it.each([
    ["without acks", true],
    ["with acks and no prefetch", false],
  ])(
    `with ${MIB} MiB behind it, %s, leaves memory flat and the rest of them on the bus`,
    async (_, noAck) => {
      const queue = `deaf-${noAck}`;
      const publisher = await fill(queue);
      const canary = await startCanary(at);
      const growth = await growthDuring(gateway.pid, async () => {
        const deaf = await deafClient(methodOf(1, "basic.consume", { queue, consumerTag: "t", noAck }));
        await new Promise((resolve) => setTimeout(resolve, 4_000));
        deaf.destroy();
      });
      const { rounds, slowest } = await canary.end();
      expect(growth).toBeLessThan(120);
      expect(rounds).toBeGreaterThan(20);
      expect(slowest).toBeLessThan(3_000);
      // With acks all of it is ready again at once; without them only what went to the socket is gone.
      const left = await ready(publisher, queue);
      if (noAck) expect(left).toBeGreaterThan(MESSAGES - 40 * 16);
      else await expect.poll(() => ready(publisher, queue), { timeout: 5_000 }).toBe(MESSAGES);
      publisher.send(1, "queue.delete", { queue });
      await publisher.expect("queue.delete-ok", 30_000);
      publisher.destroy();
    },
    120_000,
  );

  it("while it asks and asks is not answered without end", async () => {
    const canary = await startCanary(at);
    const ask = methodOf(1, "queue.declare", { queue: "asked", autoDelete: true });
    const growth = await growthDuring(gateway.pid, async () => {
      const deaf = await deafClient();
      const many = Buffer.concat(Array.from({ length: 10_000 }, () => ask));
      for (let burst = 0; burst < 30; burst++) deaf.write(many);
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      deaf.destroy();
    });
    const { slowest } = await canary.end();
    expect(growth).toBeLessThan(150);
    expect(slowest).toBeLessThan(3_000);
  }, 60_000);

  it("of returns that it provoked itself leaves memory flat", async () => {
    const canary = await startCanary(at);
    const growth = await growthDuring(gateway.pid, async () => {
      const deaf = await deafClient();
      const publisher = methodOf(1, "basic.publish", { routingKey: "nobody-at-all", mandatory: true });
      const header = Buffer.alloc(22);
      header.writeUInt8(2, 0);
      header.writeUInt16BE(1, 1);
      header.writeUInt32BE(14, 3);
      header.writeUInt16BE(60, 7);
      header.writeBigUInt64BE(BigInt(BODY.length), 11);
      header.writeUInt8(0xce, 21);
      const bodyHead = Buffer.from([3, 0, 1, 0, 1, 0, 0]);
      const message = Buffer.concat([publisher, header, bodyHead, BODY, Buffer.from([0xce])]);
      for (let sent = 0; sent < MESSAGES; sent++) deaf.write(message);
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      deaf.destroy();
    });
    await canary.end();
    expect(growth).toBeLessThan(150);
  }, 60_000);
});

describe("a writer that hardly writes", () => {
  it("gets its message through, an octet at a time", async () => {
    const canary = await startCanary(at);
    const reader = await AmqpSocket.open(at);
    await reader.channel(1);
    reader.send(1, "queue.declare", { queue: "slowly", exclusive: true });
    await reader.expect("queue.declare-ok");
    const frames: Buffer[] = [];
    const body = Buffer.from("at last");
    frames.push(methodOf(1, "basic.publish", { routingKey: "slowly" }));
    const header = Buffer.from([2, 0, 1, 0, 0, 0, 14, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, body.length, 0, 0, 0xce]);
    frames.push(header, Buffer.from([3, 0, 1, 0, 0, 0, body.length]), body, Buffer.from([0xce]));
    const writer = await AmqpSocket.open(at);
    await writer.channel(1);
    for (const octet of Buffer.concat(frames)) {
      writer.write(Buffer.of(octet));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    reader.send(1, "basic.consume", { queue: "slowly", noAck: true });
    await reader.expect("basic.consume-ok");
    await reader.expect("basic.deliver");
    expect((await reader.expectContent()).body.toString()).toBe("at last");
    for (const socket of [reader, writer]) socket.destroy();
    await canary.end();
  });

  it("and is reset in the middle of a body leaves nothing behind", async () => {
    const canary = await startCanary(at);
    const growth = await growthDuring(gateway.pid, async () => {
      for (let round = 0; round < 30; round++) {
        const header = Buffer.from([2, 0, 1, 0, 0, 0, 14, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0x70, 0, 0, 0, 0, 0xce]);
        const bodyHead = Buffer.from([3, 0, 1, 0, 1, 0, 0]);
        const half = await deafClient(
          methodOf(1, "basic.publish", { routingKey: "nobody" }),
          header,
          ...Array.from({ length: 16 }, () => Buffer.concat([bodyHead, BODY, Buffer.from([0xce])])),
        );
        half.resetAndDestroy();
      }
    });
    expect(growth).toBeLessThan(150);
    await canary.end();
  });
});
