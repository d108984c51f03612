// A full stream refuses, and never drops: publishes are nacked, publishers are told (connection.blocked), acks are still
// read, so that consumers make room, and then it goes on. design §5 (discard new), §7.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import type { AmqpSocket } from "../harness/socket.ts";
import { declare, getOne, openPublisher } from "./load.ts";

const MAX_BYTES = 4 * 1024 * 1024;
const BODY = Buffer.alloc(64 * 1024, "x");

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ env: { AMQP_STREAM_MAX_BYTES: `${MAX_BYTES}` } });
});
afterAll(releaseAll);

interface Answers {
  readonly confirms: ("ack" | "nack")[];
  blocked: number;
  unblocked: number;
}

/** Publishes and takes what comes back until every publish is answered. */
async function publish(socket: AmqpSocket, queue: string, times: number, answers: Answers): Promise<void> {
  for (let time = 0; time < times; time++) socket.publish(1, { routingKey: queue }, BODY);
  const wanted = answers.confirms.length + times;
  while (answers.confirms.length < wanted) await take(socket, answers);
}

async function take(socket: AmqpSocket, answers: Answers): Promise<void> {
  const received = await socket.next(20_000);
  if (received.kind !== "method") throw new Error(`expected a method, got ${received.kind}`);
  const { name } = received.method;
  if (name === "basic.ack") answers.confirms.push("ack");
  else if (name === "basic.nack") answers.confirms.push("nack");
  else if (name === "connection.blocked") answers.blocked++;
  else if (name === "connection.unblocked") answers.unblocked++;
  else throw new Error(`did not expect ${name}`);
}

describe("a full stream", () => {
  it("nacks, says blocked, reads acks, and says unblocked when there is room", async () => {
    const publisher = await openPublisher(gateway);
    const consumer = await openPublisher(gateway);
    await declare(publisher, "full");
    const answers: Answers = { confirms: [], blocked: 0, unblocked: 0 };
    await publish(publisher, "full", 100, answers);
    const stored = answers.confirms.filter((confirm) => confirm === "ack").length;
    expect(answers.confirms).toContain("nack");
    expect(stored * BODY.length).toBeLessThanOrEqual(MAX_BYTES);
    expect(stored * BODY.length).toBeGreaterThan(MAX_BYTES / 2);
    while (answers.blocked === 0) await take(publisher, answers);
    expect(answers.unblocked).toBe(0);

    // Every confirmed message is there, and taking them makes room. The consumer is told of the blockade too.
    let got = 0;
    const told = await consumer.next();
    expect(told).toMatchObject({ kind: "method", method: { name: "connection.blocked" } });
    for (; got < stored; got++) {
      const message = await getOneBeside(consumer, "full");
      expect(message.length).toBe(BODY.length);
    }
    while (answers.unblocked === 0) await take(publisher, answers);

    const again: Answers = { confirms: [], blocked: 0, unblocked: 0 };
    await publish(publisher, "full", 10, again);
    expect(again.confirms).toEqual(Array.from({ length: 10 }, () => "ack"));
    for (const socket of [publisher, consumer]) socket.destroy();
  }, 60_000);

  it("takes everything again once it was purged", async () => {
    const cleaner = await openPublisher(gateway);
    cleaner.send(1, "queue.purge", { queue: "full" });
    await cleaner.expect("queue.purge-ok");
    await declare(cleaner, "other");
    const answers: Answers = { confirms: [], blocked: 0, unblocked: 0 };
    await publish(cleaner, "other", 20, answers);
    expect(answers.confirms).not.toContain("nack");
    for (let got = 0; got < 20; got++) expect(await getOne(cleaner, "other")).toBeDefined();
    expect(await getOne(cleaner, "other")).toBeUndefined();
    cleaner.destroy();
  }, 60_000);
});

/** A get on a connection that may be told it is unblocked meanwhile. */
async function getOneBeside(socket: AmqpSocket, queue: string): Promise<string> {
  socket.send(1, "basic.get", { queue, noAck: false });
  for (;;) {
    const received = await socket.next(10_000);
    if (received.kind !== "method") throw new Error(`expected a method, got ${received.kind}`);
    const { name, fields } = received.method;
    if (name === "connection.blocked" || name === "connection.unblocked") continue;
    if (name !== "basic.get-ok") throw new Error(`a confirmed message is missing: ${name}`);
    const { body } = await socket.expectContent();
    socket.send(1, "basic.ack", { deliveryTag: fields.deliveryTag });
    return body.toString();
  }
}
