// What clients see of our gateway stopping and crashing: a reason, and everything that was confirmed.
// It starts gateways of its own; a reference broker has no part in it.
import { type ChannelModel, type ConfirmChannel, connect as connectTo } from "amqplib";
import { afterEach, describe, expect, it } from "vitest";
import { type Gateway, type GatewayOptions, startGateway } from "../harness/gateway.ts";
import { releaseAll, temporaryFolder } from "../harness/owned.ts";
import { isReference } from "../harness/reference.ts";

const gateways: Gateway[] = [];

afterEach(async () => {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
  await releaseAll();
});

async function start(options: GatewayOptions): Promise<Gateway> {
  const gateway = await startGateway(options);
  gateways.push(gateway);
  return gateway;
}

async function open({ url }: Gateway): Promise<{ connection: ChannelModel; channel: ConfirmChannel }> {
  const connection = await connectTo(url, { noDelay: true });
  connection.on("error", () => undefined);
  const channel = await connection.createConfirmChannel();
  channel.on("error", () => undefined);
  return { connection, channel };
}

async function exists(gateway: Gateway, queue: string): Promise<boolean> {
  const { connection, channel } = await open(gateway);
  const found = await channel.checkQueue(queue).then(
    () => true,
    () => false,
  );
  await connection.close();
  return found;
}

/** Consumes until nothing came for half a second. */
async function takeAll(gateway: Gateway, queue: string): Promise<{ text: string; redelivered: boolean }[]> {
  const { connection, channel } = await open(gateway);
  const taken: { text: string; redelivered: boolean }[] = [];
  await channel.consume(queue, (message) => {
    if (message === null) return;
    taken.push({ text: message.content.toString(), redelivered: message.fields.redelivered });
    channel.ack(message);
  });
  for (let seen = -1; seen !== taken.length; ) {
    seen = taken.length;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  await connection.close();
  return taken;
}

describe.runIf(!isReference)("our gateway", () => {
  it("tells its clients why it stops: 320", async () => {
    const gateway = await start({});
    const { connection } = await open(gateway);
    const reason = new Promise<Error | undefined>((resolve) => {
      connection.once("close", resolve);
    });
    await gateway.stop();
    expect((await reason)?.message).toContain("320 (CONNECTION-FORCED)");
  });

  it("keeps durable queues, bindings and messages through a stop, and lets the others go", async () => {
    const dataDir = temporaryFolder("amqp-restart");
    const first = await start({ dataDir });
    const { channel } = await open(first);
    await channel.assertQueue("durable");
    await channel.assertQueue("transient", { durable: false });
    await channel.assertQueue("exclusive", { exclusive: true });
    await channel.assertExchange("kept", "topic");
    await channel.assertExchange("gone", "topic", { durable: false });
    await channel.bindQueue("durable", "kept", "a.#");
    for (const text of ["handed back", "held", "ready"]) channel.publish("kept", "a.b", Buffer.from(text));
    await channel.waitForConfirms();
    const back = await channel.get("durable");
    await channel.get("durable");
    if (back !== false) channel.nack(back);
    await first.stop();

    const second = await start({ dataDir });
    expect(await exists(second, "transient")).toBe(false);
    expect(await exists(second, "exclusive")).toBe(false);
    const { channel: again } = await open(second);
    await again.checkExchange("kept");
    again.publish("kept", "a", Buffer.from("new"));
    await again.waitForConfirms();
    expect(await takeAll(second, "durable")).toEqual([
      { text: "handed back", redelivered: true },
      { text: "held", redelivered: true },
      { text: "ready", redelivered: false },
      { text: "new", redelivered: false },
    ]);
    await expect(again.checkExchange("gone")).rejects.toThrow("NOT_FOUND");
  }, 60_000);

  it("loses none of 5,000 confirmed messages when it and its bus are killed; what was acked stays away", async () => {
    const dataDir = temporaryFolder("amqp-restart");
    const first = await start({ dataDir });
    const { channel } = await open(first);
    await channel.assertQueue("work");
    await channel.assertQueue("exclusive", { exclusive: true });
    const texts = Array.from({ length: 5_000 }, (_, i) => `${i}`);
    for (const text of texts) channel.sendToQueue("work", Buffer.from(text));
    await channel.waitForConfirms();
    for (let i = 0; i < 100; i++) {
      const message = await channel.get("work");
      if (message !== false && i < 90) channel.ack(message);
    }
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await first.crash();

    const since = Date.now();
    const second = await start({ dataDir });
    expect(await exists(second, "exclusive")).toBe(false);
    const taken = await takeAll(second, "work");
    expect(Date.now() - since).toBeLessThan(30_000); // not after the ack wait of five minutes
    const left = new Set(taken.map(({ text }) => text));
    expect([...texts.slice(90)].filter((text) => !left.has(text))).toEqual([]);
    expect(texts.slice(0, 90).filter((text) => left.has(text))).toEqual([]);
  }, 90_000);

  it("refuses publishes when its stream is full, tells so, and takes them again when there is room", async () => {
    const gateway = await start({ env: { AMQP_STREAM_MAX_BYTES: `${2 * 1_048_576}` } });
    const { connection, channel } = await open(gateway);
    const events: string[] = [];
    connection.on("blocked", () => events.push("blocked"));
    connection.on("unblocked", () => events.push("unblocked"));
    await channel.assertQueue("full");
    let nacked = 0;
    for (let i = 0; i < 40; i++) {
      channel.sendToQueue("full", Buffer.alloc(100_000), {}, (error) => {
        if (error !== null) nacked++;
      });
    }
    await channel.waitForConfirms().catch(() => undefined);
    await expect.poll(() => nacked).toBeGreaterThan(0);
    await expect.poll(() => events, { timeout: 10_000 }).toContain("blocked");

    const reader = await open(gateway); // acks are still read
    for (
      let message = await reader.channel.get("full");
      message !== false;
      message = await reader.channel.get("full")
    ) {
      reader.channel.ack(message);
    }
    await expect.poll(() => events, { timeout: 20_000 }).toContain("unblocked");
    channel.sendToQueue("full", Buffer.from("fits"));
    await channel.waitForConfirms();
  }, 60_000);
});
