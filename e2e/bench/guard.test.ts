// A cliff guard: three rows through the gateway as a ratio to the raw bus in the same run, against what was recorded.
// It fails only below half of the recorded ratio, so that a busy machine does not fail it and a cliff does. The raw bus
// is what nothing over JetStream can beat: publishes by the client with a window, and pulls by the client with acks.
import { setTimeout as sleep } from "node:timers/promises";
import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import amqp from "amqplib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";

/** Ratios gateway : raw bus, the least of several runs on a busy two-core machine (docs/performance.md). */
const RECORDED = { publish: 0.5, consume: 0.5, large: 0.3 } as const;
const WINDOW = 200;
const ROUNDS = 3;

let gateway: Gateway;
let bus: NatsConnection;

beforeAll(async () => {
  gateway = await startGateway();
  bus = await connect({ servers: gateway.natsUrl });
  const manager = await jetstreamManager(bus);
  await manager.streams.add({ name: "RAW", subjects: ["raw.>"], retention: RetentionPolicy.Interest });
  await manager.consumers.add("RAW", { durable_name: "raw", ack_policy: AckPolicy.Explicit, max_ack_pending: -1 });
});
afterAll(async () => {
  await bus?.close();
  await gateway?.stop();
  await releaseAll();
});

/** The best of some rounds of each, taken in turns. */
async function ratio(ours: () => Promise<number>, raw: () => Promise<number>): Promise<number> {
  let best = 0;
  let bestRaw = 0;
  for (let round = 0; round < ROUNDS; round++) {
    bestRaw = Math.max(bestRaw, await raw());
    best = Math.max(best, await ours());
    await sleep(50);
  }
  return best / bestRaw;
}

async function perSecond(count: number, work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (count * 1_000) / (performance.now() - began);
}

async function publishOurs(count: number, size: number, queue = "guard"): Promise<number> {
  const connection = await amqp.connect(gateway.url);
  const channel = await connection.createConfirmChannel();
  await channel.assertQueue(queue, { durable: true });
  const body = Buffer.alloc(size, "x");
  const rate = await perSecond(count, async () => {
    for (let sent = 0; sent < count; sent += WINDOW) {
      for (let i = 0; i < WINDOW; i++) channel.sendToQueue(queue, body, { persistent: true });
      await channel.waitForConfirms();
    }
  });
  await connection.close();
  return rate;
}

async function consumeOurs(count: number): Promise<number> {
  await publishOurs(count, 100, "read");
  const connection = await amqp.connect(gateway.url);
  const channel = await connection.createChannel();
  await channel.prefetch(WINDOW);
  const rate = await perSecond(count, async () => {
    await new Promise<void>((resolve) => {
      let seen = 0;
      void channel.consume("read", (message) => {
        if (message === null) return;
        channel.ack(message);
        if (++seen === count) resolve();
      });
    });
  });
  await connection.close();
  return rate;
}

async function publishRaw(count: number, size: number): Promise<number> {
  const stream = jetstream(bus);
  const body = Buffer.alloc(size, "x");
  return await perSecond(count, async () => {
    for (let sent = 0; sent < count; sent += WINDOW) {
      await Promise.all(Array.from({ length: WINDOW }, () => stream.publish("raw.guard", body)));
    }
  });
}

async function consumeRaw(count: number): Promise<number> {
  await publishRaw(count, 100);
  const consumer = await jetstream(bus).consumers.get("RAW", "raw");
  return await perSecond(count, async () => {
    let seen = 0;
    const messages = await consumer.consume({ max_messages: WINDOW });
    for await (const message of messages) {
      message.ack();
      if (++seen === count) break;
    }
    await messages.close();
  });
}

it("publishes with confirms no slower than half of what was recorded", { timeout: 120_000 }, async () => {
  const found = await ratio(
    () => publishOurs(4_000, 100),
    () => publishRaw(4_000, 100),
  );
  console.log(`confirmed publish, gateway : raw bus ${found.toFixed(2)} (recorded ${RECORDED.publish})`);
  expect(found).toBeGreaterThan(RECORDED.publish / 2);
});

it("consumes with acks no slower than half of what was recorded", { timeout: 120_000 }, async () => {
  const found = await ratio(
    () => consumeOurs(2_000),
    () => consumeRaw(2_000),
  );
  console.log(`consume + ack, gateway : raw bus ${found.toFixed(2)} (recorded ${RECORDED.consume})`);
  expect(found).toBeGreaterThan(RECORDED.consume / 2);
});

it("publishes large bodies no slower than half of what was recorded", { timeout: 120_000 }, async () => {
  const found = await ratio(
    () => publishOurs(400, 64 * 1024),
    () => publishRaw(400, 64 * 1024),
  );
  console.log(`confirmed publish of 64 KiB, gateway : raw bus ${found.toFixed(2)} (recorded ${RECORDED.large})`);
  expect(found).toBeGreaterThan(RECORDED.large / 2);
});
