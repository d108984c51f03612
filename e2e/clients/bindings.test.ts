// queue.bind and queue.unbind: what each kind of exchange matches, what is made and undone, and what is refused.
// That a binding is an interval of time, whatever happens to it later, is model/intervals.test.ts's.
import { describe, expect, it } from "vitest";
import { differs } from "./differences.ts";
import { channelRefusal, refusalOf } from "./refusal.ts";
import {
  drain,
  exchangeName,
  newExchange,
  newQueue,
  openChannel,
  openConfirmChannel,
  publish,
  queueName,
} from "./session.ts";

describe("routing", () => {
  it("direct: the whole key, case and all", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "a.b");
    for (const key of ["a.b", "a.B", "a", "a.b.c", ""]) await publish(channel, exchange, key, key);
    expect(await drain(channel, queue)).toEqual(["a.b"]);
  });

  it("direct: an empty key is a key", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.assertQueue(""); // so that the empty key is not replaced by the last queue's name
    await channel.bindQueue(queue, exchange, "");
    for (const key of ["", "_", "a"]) await publish(channel, exchange, key, `key ${key}`);
    expect(await drain(channel, queue)).toEqual(["key "]);
  });

  it("fanout: every key, in every queue", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "fanout");
    const [first, second] = [await newQueue(channel), await newQueue(channel)];
    await channel.bindQueue(first, exchange, "ignored");
    await channel.bindQueue(first, exchange, "ignored.too");
    await channel.bindQueue(second, exchange, "");
    const keys = ["", "a", "a.b.c", "ignored"];
    for (const key of keys) await publish(channel, exchange, key, key);
    expect(await drain(channel, first)).toEqual(keys);
    expect(await drain(channel, second)).toEqual(keys);
  });

  const KEYS = ["", "a", "a.b", "a.b.c", "b", "b.a", "b.a.c", "_", "_._"];
  it.each([
    ["#", KEYS],
    ["", [""]],
    ["*", ["a", "b", "_"]],
    ["a", ["a"]],
    ["a.*", ["a.b"]],
    ["a.#", ["a", "a.b", "a.b.c"]],
    ["*.a", ["b.a"]],
    ["*.*", ["a.b", "b.a", "_._"]],
    ["*.a.#", ["b.a", "b.a.c"]],
    ["*.#", KEYS.filter((key) => key !== "")],
    ["_", ["_"]],
  ])("topic: %j", async (pattern, matched) => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    if (pattern === "") await channel.assertQueue("", { exclusive: true });
    await channel.bindQueue(queue, exchange, pattern);
    for (const key of KEYS) await publish(channel, exchange, key, key);
    expect(await drain(channel, queue)).toEqual(matched);
  });

  it("keeps the order of one publisher across the bindings of a queue", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    for (const key of ["a", "b", "c"]) await channel.bindQueue(queue, exchange, key);
    const texts = Array.from({ length: 60 }, (_, i) => `${i}`);
    for (const [i, text] of texts.entries()) channel.publish(exchange, "abc"[i % 3] ?? "", Buffer.from(text));
    await channel.waitForConfirms();
    expect(await drain(channel, queue)).toEqual(texts);
  });
});

describe("a binding", () => {
  it("is made once, however often, and undone at once", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    for (let i = 0; i < 3; i++) await channel.bindQueue(queue, exchange, "k");
    await publish(channel, exchange, "k", "1");
    await channel.unbindQueue(queue, exchange, "k");
    await publish(channel, exchange, "k", "2");
    expect(await drain(channel, queue)).toEqual(["1"]);
  });

  it("is undone for its key only", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "a.*");
    await channel.bindQueue(queue, exchange, "a.b");
    await channel.unbindQueue(queue, exchange, "a.*");
    await publish(channel, exchange, "a.b", "kept");
    await publish(channel, exchange, "a.c", "gone");
    expect(await drain(channel, queue)).toEqual(["kept"]);
  });

  // amqplib sends a channel's next bind when the last one was answered: what comes together comes over channels.
  it("1,000 over 20 channels are made within seconds, and all take", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    const keys = Array.from({ length: 1_000 }, (_, i) => `key-${i}`);
    const channels = await Promise.all(Array.from({ length: 20 }, () => openChannel()));
    await Promise.all(keys.map((key, i) => channels[i % 20]?.bindQueue(queue, exchange, key)));
    for (const key of keys) channel.publish(exchange, key, Buffer.from(key));
    await channel.waitForConfirms();
    expect(await drain(channel, queue)).toEqual(keys);
  }, 120_000);
});

describe("refusals", () => {
  const noQueue = (queue: string) => `NOT_FOUND - no queue '${queue}' in vhost '/'`;
  const noExchange = (exchange: string) => `NOT_FOUND - no exchange '${exchange}' in vhost '/'`;

  it("bind: no such queue", async () => {
    const channel = await openChannel();
    const [queue, exchange] = [queueName(), await newExchange(channel, "direct")];
    const refusal = await refusalOf(channel, () => channel.bindQueue(queue, exchange, "k"));
    expect(refusal).toEqual(channelRefusal(404, noQueue(queue), "queue.bind"));
  });

  it("bind: no such exchange", async () => {
    const channel = await openChannel();
    const [queue, exchange] = [await newQueue(channel), exchangeName()];
    const refusal = await refusalOf(channel, () => channel.bindQueue(queue, exchange, "k"));
    expect(refusal).toEqual(channelRefusal(404, noExchange(exchange), "queue.bind"));
  });

  it("bind: neither, and the exchange is named", async () => {
    const channel = await openChannel();
    const exchange = exchangeName();
    const refusal = await refusalOf(channel, () => channel.bindQueue(queueName(), exchange, "k"));
    expect(refusal).toEqual(channelRefusal(404, noExchange(exchange), "queue.bind"));
  });

  it("unbind: what is not bound, or not there at all, counts as unbound", async () => {
    const channel = await openChannel();
    const [queue, exchange] = [await newQueue(channel), await newExchange(channel, "direct")];
    await channel.unbindQueue(queue, exchange, "never");
    await channel.unbindQueue(queueName(), exchange, "k");
    await channel.unbindQueue(queue, exchangeName(), "k");
  });

  it.each(["#.a", "a.#.b", "#.#"])("topic key %s where # stands before the end", async (key) => {
    const channel = await openChannel();
    const [queue, exchange] = [await newQueue(channel), await newExchange(channel, "topic")];
    const bind = () => channel.bindQueue(queue, exchange, key);
    if (!differs("hash-before-the-end")) {
      await bind();
      return;
    }
    const refusal = await refusalOf(channel, bind);
    expect(refusal).toMatchObject({ scope: "channel", code: 540, method: "queue.bind" });
    expect(refusal.text).toMatch(/^NOT_IMPLEMENTED - /);
  });

  it.each(["a.b*", "*a", "a#", "a.#b"])("topic key %s with a wildcard within a word", async (key) => {
    const channel = await openChannel();
    const [queue, exchange] = [await newQueue(channel), await newExchange(channel, "topic")];
    const bind = () => channel.bindQueue(queue, exchange, key);
    if (!differs("partial-wildcard")) {
      await bind();
      return;
    }
    expect(await refusalOf(channel, bind)).toMatchObject({ scope: "channel", code: 540, method: "queue.bind" });
  });

  it.each(["a.*", "#", "a>"])("direct key %s with a wildcard", async (key) => {
    const channel = await openChannel();
    const [queue, exchange] = [await newQueue(channel), await newExchange(channel, "direct")];
    const bind = () => channel.bindQueue(queue, exchange, key);
    if (!differs("direct-wildcard")) {
      await bind();
      return;
    }
    expect(await refusalOf(channel, bind)).toMatchObject({ scope: "channel", code: 540, method: "queue.bind" });
  });
});
