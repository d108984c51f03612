// Two programs on one bus, of which one knows AMQP and the other only NATS (HIP §2.2): the native reader gets the body a
// publisher sent, on the subject its exchange and key say; the native publisher reaches the queue; and what other
// adaptors put on the bus never comes near an AMQP queue.
import { decodeProperties, encodeProperties, toPlain } from "@amqp/codec";
import { headers, type Msg } from "@nats-io/transport-node";
import type { ConfirmChannel } from "amqplib";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { drain, exchangeName, get, newExchange, newQueue, openConfirmChannel, until } from "../clients/session.ts";
import { target } from "../harness/target.ts";
import { type Bus, openBus } from "./bus.ts";

let bus: Bus;
let endings: (() => Promise<void>)[] = [];

beforeAll(async () => {
  bus = await openBus((await target()).natsUrl ?? "");
});
afterEach(async () => {
  for (const end of endings) await end();
  endings = [];
});
afterAll(async () => await bus?.close());

/** A native subscriber and what it has read. */
async function listen(subject: string): Promise<readonly Msg[]> {
  const messages: Msg[] = [];
  const subscription = bus.nats.subscribe(subject, { callback: (_, message) => void messages.push(message) });
  await bus.nats.flush();
  endings.push(async () => await subscription.drain());
  return messages;
}

/** Publishes and waits for the confirm: the bus has it. */
async function publish(
  channel: ConfirmChannel,
  exchange: string,
  key: string,
  body: Buffer,
  options = {},
): Promise<void> {
  channel.publish(exchange, key, body, options);
  await channel.waitForConfirms();
}

describe("a native reader", () => {
  it("reads the body verbatim on amqp.<exchange>.<routing key>", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const read = await listen(`amqp.${exchange}.>`);
    const bodies = [
      Buffer.from("plain text"),
      Buffer.from([0, 255, 10, 13, 0xce]),
      Buffer.alloc(0),
      Buffer.alloc(300_000, 7),
    ];
    for (const [number, body] of bodies.entries()) await publish(channel, exchange, `a.b.${number}`, body);
    await until(() => read.length === bodies.length);
    for (const [number, body] of bodies.entries()) {
      expect(read[number]?.subject).toBe(`amqp.${exchange}.a.b.${number}`);
      expect(Buffer.from(read[number]?.data ?? []).equals(body)).toBe(true);
    }
  });

  it("finds every property in one header, Amqp-Props, as base64 of property flags and list", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "fanout");
    const read = await listen(`amqp.${exchange}.>`);
    await publish(channel, exchange, "k", Buffer.from("body"), {
      contentType: "text/plain",
      contentEncoding: "utf-8",
      headers: { text: "é", number: 7, nested: { list: [1, "two", true] } },
      persistent: true,
      priority: 3,
      correlationId: "c",
      replyTo: "r",
      expiration: "60000",
      messageId: "m",
      timestamp: 1_700_000_000,
      type: "t",
      userId: "guest",
      appId: "a",
    });
    const [message] = await until(() => read.length > 0 && read);
    expect(message?.headers?.keys()).toEqual(["Amqp-Props"]);
    const octets = Buffer.from(message?.headers?.get("Amqp-Props") ?? "", "base64");
    const { headers: table = [], ...rest } = decodeProperties(octets);
    expect(rest).toEqual({
      contentType: "text/plain",
      contentEncoding: "utf-8",
      deliveryMode: 2,
      priority: 3,
      correlationId: "c",
      replyTo: "r",
      expiration: "60000",
      messageId: "m",
      timestamp: 1_700_000_000n,
      type: "t",
      userId: "guest",
      appId: "a",
    });
    expect(toPlain(table)).toEqual({ text: "é", number: 7, nested: { list: [1, "two", true] } });
  });

  it("finds the default exchange under _, and the empty key under no word at all", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    const [straight, all, bare] = [
      await listen("amqp._.*"),
      await listen(`amqp.${exchange}.>`),
      await listen(`amqp.${exchange}`),
    ];
    await publish(channel, "", queue, Buffer.from("to the queue"));
    await publish(channel, exchange, "", Buffer.from("no key"));
    await publish(channel, exchange, "_", Buffer.from("a literal _"));
    await until(() => straight.length === 1 && bare.length === 1 && all.length === 1);
    expect(straight[0]?.subject).toBe(`amqp._.${queue}`);
    expect(bare[0]?.string()).toBe("no key");
    expect(all[0]?.subject).toBe(`amqp.${exchange}._`);
    await drain(channel, queue);
  });

  it("reads what no queue takes, but for a mandatory message that came back", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const read = await listen(`amqp.${exchange}.>`);
    const returned: string[] = [];
    channel.on("return", (message) => returned.push(message.content.toString()));
    await publish(channel, exchange, "k", Buffer.from("for whom it may concern"));
    await publish(channel, exchange, "k", Buffer.from("for a queue"), { mandatory: true });
    await publish(channel, exchange, "k", Buffer.from("the last"));
    await until(() => read.length >= 2);
    expect(read.map((message) => message.string())).toEqual(["for whom it may concern", "the last"]);
    expect(returned).toEqual(["for a queue"]);
  });

  it("is shown two equal message-ids as two messages", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    for (const body of ["1", "2"]) await publish(channel, "", queue, Buffer.from(body), { messageId: "same" });
    expect(await drain(channel, queue)).toEqual(["1", "2"]);
  });
});

describe("a native publisher", () => {
  it("reaches the queue, over JetStream and plainly, without properties", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "a.#");
    await bus.stream.publish(`amqp.${exchange}.a.b`, "from JetStream");
    bus.nats.publish(`amqp.${exchange}.a`, "from NATS");
    await bus.nats.flush();
    await bus.stream.publish(`amqp._.${queue}`, "over the default exchange");
    const [first, second, third] = [await get(channel, queue), await get(channel, queue), await get(channel, queue)];
    expect([first, second, third].map(({ content }) => content.toString())).toEqual([
      "from JetStream",
      "from NATS",
      "over the default exchange",
    ]);
    expect(first.fields).toMatchObject({ exchange, routingKey: "a.b", redelivered: false });
    expect(second.fields).toMatchObject({ exchange, routingKey: "a" });
    expect(third.fields).toMatchObject({ exchange: "", routingKey: queue });
    expect(Object.values(first.properties).filter((value) => value !== undefined)).toEqual([]);
    for (const message of [first, second, third]) channel.ack(message);
  });

  it("may send properties along", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const octets = encodeProperties({ contentType: "text/html", deliveryMode: 2, correlationId: "7" });
    const properties = headers();
    properties.set("Amqp-Props", octets.toString("base64"));
    await bus.stream.publish(`amqp._.${queue}`, "with properties", { headers: properties });
    const message = await get(channel, queue);
    expect(message.content.toString()).toBe("with properties");
    expect(message.properties).toMatchObject({ contentType: "text/html", deliveryMode: 2, correlationId: "7" });
    channel.ack(message);
  });

  it("does no harm with properties that are none", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    for (const nonsense of ["not base64 at all!", "/////w==", "AAAA", ""]) {
      const properties = headers();
      properties.set("Amqp-Props", nonsense);
      await bus.stream.publish(`amqp._.${queue}`, "odd", { headers: properties });
    }
    await bus.stream.publish(`amqp._.${queue}`, "well-formed");
    const bodies = await drain(channel, queue);
    expect(bodies.at(-1)).toBe("well-formed");
    expect(bodies.slice(0, -1).every((body) => body === "odd")).toBe(true);
  });

  it("may add headers of its own", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const own = headers();
    own.set("Trace-Id", "1");
    own.set("Amqp-Props", encodeProperties({ type: "t" }).toString("base64"));
    await bus.stream.publish(`amqp._.${queue}`, "traced", { headers: own });
    const message = await get(channel, queue);
    expect(message.properties.type).toBe("t");
    channel.ack(message);
  });
});

describe("other subtrees of the bus", () => {
  it("never arrive, however widely a queue is bound", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "#");
    const neighbour = exchangeName();
    for (const subject of ["kafka-orders-0.data", "amqpx.a", "amqp", `amqpx.${exchange}.a`, `amqp.${neighbour}.a`]) {
      bus.nats.publish(subject, "foreign");
    }
    await bus.nats.flush();
    await publish(channel, exchange, "a", Buffer.from("ours"));
    expect((await channel.checkQueue(queue)).messageCount).toBe(1);
    expect(await drain(channel, queue)).toEqual(["ours"]);
  });

  it("are not in the stream's subjects", async () => {
    expect((await bus.streamConfig()).subjects).toEqual(["amqp.>"]);
  });
});
