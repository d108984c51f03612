// basic.publish: properties, sizes, mandatory and basic.return, expiration.
import type { Message, Options } from "amqplib";
import { describe, expect, it } from "vitest";
import { consume } from "./consumer.ts";
import { channelRefusal, refusalOf } from "./refusal.ts";
import {
  drain,
  exchangeName,
  get,
  newExchange,
  newQueue,
  openChannel,
  openConfirmChannel,
  pause,
  publish,
  send,
  until,
} from "./session.ts";

describe("a message arrives as it was sent", () => {
  it("with every property", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const headers = {
      text: "täxt",
      yes: true,
      no: false,
      int: 7,
      large: 2 ** 40,
      float: 1.5,
      list: ["a", 1, [true]],
      table: { inner: { most: "x" } },
      time: { "!": "timestamp", value: 1_700_000_000 },
      nothing: null,
      bytes: Buffer.from([0, 255]),
    };
    channel.sendToQueue(queue, Buffer.from("body"), {
      contentType: "text/plain",
      contentEncoding: "utf-8",
      headers,
      deliveryMode: 2,
      priority: 3,
      correlationId: "correlation",
      replyTo: "reply",
      expiration: "600000",
      messageId: "id",
      timestamp: 1_700_000_000,
      type: "type",
      userId: "guest",
      appId: "app",
    });
    await channel.waitForConfirms();
    const { properties, content } = await get(channel, queue);
    expect(content.toString()).toBe("body");
    expect(properties).toMatchObject({
      contentType: "text/plain",
      contentEncoding: "utf-8",
      deliveryMode: 2,
      priority: 3,
      correlationId: "correlation",
      replyTo: "reply",
      expiration: "600000",
      messageId: "id",
      timestamp: 1_700_000_000,
      type: "type",
      userId: "guest",
      appId: "app",
    });
    expect(properties.headers).toEqual(headers);
  });

  it("with none", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    channel.sendToQueue(queue, Buffer.from("body"), { headers: undefined } as Options.Publish);
    await channel.waitForConfirms();
    const { properties } = await get(channel, queue);
    expect(properties.contentType).toBeUndefined();
    expect(properties.messageId).toBeUndefined();
    expect(properties.headers ?? {}).toEqual({});
  });

  it.each([0, 1, 4_088, 131_063, 131_064, 131_065, 1_048_576, 4_000_000])("with a body of %i octets", async (size) => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const body = Buffer.alloc(size, Buffer.from("0123456789abc"));
    channel.sendToQueue(queue, body);
    await channel.waitForConfirms();
    expect((await get(channel, queue)).content.equals(body)).toBe(true);
  });

  it("with bodies of 8 MB among small ones, unacknowledged", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const sizes = [10, 8_000_000, 10, 1_000_000, 8_000_000, 10];
    const consumer = await consume(channel, queue);
    for (const size of sizes) channel.sendToQueue(queue, Buffer.alloc(size, "x"));
    await until(() => consumer.messages.length === sizes.length, 20_000);
    expect(consumer.messages.map(({ content }) => content.length)).toEqual(sizes);
  });

  it("with octets that are no text", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const body = Buffer.from(Array.from({ length: 1_024 }, (_, i) => i & 255));
    channel.sendToQueue(queue, body);
    await channel.waitForConfirms();
    expect((await get(channel, queue)).content.equals(body)).toBe(true);
  });

  it("twice where the same message-id is sent twice", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    for (const text of ["a", "b"]) channel.sendToQueue(queue, Buffer.from(text), { messageId: "same" });
    await channel.waitForConfirms();
    expect(await drain(channel, queue)).toEqual(["a", "b"]);
  });

  it("in order, 2,000 of them over one channel", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const texts = Array.from({ length: 2_000 }, (_, i) => `${i}`);
    const consumer = await consume(channel, queue, { noAck: true });
    for (const text of texts) channel.sendToQueue(queue, Buffer.from(text));
    expect(await consumer.received(2_000)).toEqual(texts);
  });
});

describe("mandatory", () => {
  it("returns what no queue takes: 312 with properties and body, then confirms it", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const order: string[] = [];
    const returned: Message[] = [];
    channel.on("return", (message) => {
      order.push("return");
      returned.push(message);
    });
    channel.on("ack", () => order.push("ack"));
    const properties = { mandatory: true, contentType: "text/plain", correlationId: "c", headers: { a: 1 } };
    channel.publish(exchange, "nobody", Buffer.from("body"), properties);
    await channel.waitForConfirms();
    expect(order).toEqual(["return", "ack"]);
    const [message] = returned;
    expect(message?.fields).toMatchObject({ replyCode: 312, replyText: "NO_ROUTE", exchange, routingKey: "nobody" });
    expect(message?.properties).toMatchObject({ contentType: "text/plain", correlationId: "c", headers: { a: 1 } });
    expect(message?.content.toString()).toBe("body");
  });

  it.each([0, 300_000])("returns a body of %i octets", async (size) => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "fanout");
    const returned: Message[] = [];
    channel.on("return", (message) => returned.push(message));
    channel.publish(exchange, "", Buffer.alloc(size, "x"), { mandatory: true });
    await channel.waitForConfirms();
    expect(returned[0]?.content.equals(Buffer.alloc(size, "x"))).toBe(true);
  });

  it("returns nothing that a queue takes", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "a.#");
    const returned: string[] = [];
    channel.on("return", (message) => returned.push(message.content.toString()));
    for (const key of ["a", "b", "a.b", "ab", ""])
      channel.publish(exchange, key, Buffer.from(key), { mandatory: true });
    await channel.waitForConfirms();
    expect(returned).toEqual(["b", "ab", ""]);
    expect(await drain(channel, queue)).toEqual(["a", "a.b"]);
  });

  it("sees at once what another connection declares, binds, unbinds and deletes", async () => {
    const [publisher, other] = [await openConfirmChannel(), await openChannel()];
    const exchange = await newExchange(other, "direct");
    const queue = await newQueue(other);
    let returned = 0;
    publisher.on("return", () => returned++);
    const isReturned = async (): Promise<boolean> => {
      const before = returned;
      publisher.publish(exchange, "k", Buffer.from("x"), { mandatory: true });
      await publisher.waitForConfirms();
      return returned > before;
    };
    expect(await isReturned()).toBe(true);
    await other.bindQueue(queue, exchange, "k");
    expect(await isReturned()).toBe(false);
    await other.unbindQueue(queue, exchange, "k");
    expect(await isReturned()).toBe(true);
    await other.bindQueue(queue, exchange, "k");
    expect(await isReturned()).toBe(false);
    await other.deleteQueue(queue);
    expect(await isReturned()).toBe(true);
  });

  it("without it, what no queue takes is confirmed and gone", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    channel.on("return", () => expect.unreachable());
    await publish(channel, exchange, "nobody", "x");
  });
});

describe("an exchange that does not exist", () => {
  it("closes the channel with 404, and its earlier publishes count", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const exchange = exchangeName();
    const refusal = await refusalOf(channel, () => {
      channel.sendToQueue(queue, Buffer.from("before"));
      channel.publish(exchange, "k", Buffer.from("x"));
      channel.sendToQueue(queue, Buffer.from("after"));
    });
    const text = `NOT_FOUND - no exchange '${exchange}' in vhost '/'`;
    expect(refusal).toEqual(channelRefusal(404, text, "basic.publish"));
    const other = await openChannel();
    await until(async () => (await other.checkQueue(queue)).messageCount === 1);
    expect(await drain(other, queue)).toEqual(["before"]);
  });
});

describe("expiration", () => {
  it.each([
    ["abc", "no_integer"],
    ["", "no_integer"],
    [" 1", "no_integer"],
    ["-1", "{value_negative,-1}"],
    ["1.5", '{leftover_string,".5"}'],
  ])("refuses %j with 406", async (expiration, reason) => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    const refusal = await refusalOf(channel, () => channel.sendToQueue(queue, Buffer.from("x"), { expiration }));
    const text = `PRECONDITION_FAILED - invalid expiration '${expiration}'`;
    expect(refusal).toMatchObject({ scope: "channel", code: 406, method: "basic.publish" });
    expect(refusal.text.startsWith(text), `${refusal.text} (RabbitMQ: ${reason})`).toBe(true);
    expect(await drain(await openChannel(), queue)).toEqual([]);
  });

  it("never delivers what has expired, and the rest in order", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    channel.sendToQueue(queue, Buffer.from("short"), { expiration: "60" });
    channel.sendToQueue(queue, Buffer.from("long"), { expiration: "60000" });
    channel.sendToQueue(queue, Buffer.from("at once"), { expiration: "0" });
    channel.sendToQueue(queue, Buffer.from("never"));
    await channel.waitForConfirms();
    await pause(200);
    expect(await drain(channel, queue)).toEqual(["long", "never"]);
  });

  it("is enforced for consumers too, also after a requeue", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    channel.sendToQueue(queue, Buffer.from("held"), { expiration: "150" });
    await channel.waitForConfirms();
    const held = await get(channel, queue);
    await pause(300);
    channel.nack(held);
    const consumer = await consume(channel, queue);
    await send(channel, queue, "fresh");
    expect(await consumer.received(1)).toEqual(["fresh"]);
  });
});
