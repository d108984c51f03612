// basic.consume, cancel, get, qos: who gets what, how much at a time, and with which tags.

import type { Message } from "amqplib";
import { describe, expect, it } from "vitest";
import { type Consumer, consume } from "./consumer.ts";
import { channelRefusal, refusalOf } from "./refusal.ts";
import {
  connect,
  drain,
  get,
  newQueue,
  openChannel,
  openConfirmChannel,
  pause,
  queueName,
  send,
  until,
} from "./session.ts";

const first = (consumer: Consumer): Message => consumer.messages[0] as Message;

describe("basic.consume", () => {
  it("delivers what is ready and what comes, in order, with rising tags", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    const consumer = await consume(channel, queue);
    await send(channel, queue, "c");
    expect(await consumer.received(3)).toEqual(["a", "b", "c"]);
    expect(consumer.messages.map(({ fields }) => fields.deliveryTag)).toEqual([1, 2, 3]);
    expect(first(consumer).fields).toMatchObject({
      consumerTag: consumer.tag,
      exchange: "",
      routingKey: queue,
      redelivered: false,
    });
  });

  it("tags rise in socket order across the consumers of a channel", async () => {
    const channel = await openConfirmChannel();
    const queues = [await newQueue(channel), await newQueue(channel), await newQueue(channel)];
    const tags: number[] = [];
    for (const queue of queues) await channel.consume(queue, (message) => tags.push(message?.fields.deliveryTag ?? 0));
    for (let i = 0; i < 30; i++) channel.sendToQueue(queues[i % 3] as string, Buffer.from(`${i}`));
    await until(() => tags.length === 30);
    expect(tags).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
  });

  it("names a consumer itself, or takes the client's tag", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    expect((await consume(channel, queue)).tag).not.toBe("");
    expect((await consume(channel, queue, { consumerTag: "mine" })).tag).toBe("mine");
  });

  it("refuses a tag in use on the channel with 530 on the connection", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    await consume(channel, queue, { consumerTag: "mine" });
    expect(await refusalOf(channel, () => consume(channel, queue, { consumerTag: "mine" }))).toMatchObject({
      scope: "connection",
      code: 530,
      text: "NOT_ALLOWED - attempt to reuse consumer tag 'mine'",
    });
  });

  it("takes the same tag on two channels", async () => {
    const connection = await connect();
    const [one, two] = [await openChannel(connection), await openChannel(connection)];
    const queue = await newQueue(one);
    await consume(one, queue, { consumerTag: "mine" });
    await consume(two, queue, { consumerTag: "mine" });
  });

  it("refuses a queue that does not exist with 404", async () => {
    const channel = await openChannel();
    const queue = queueName();
    const text = `NOT_FOUND - no queue '${queue}' in vhost '/'`;
    expect(await refusalOf(channel, () => consume(channel, queue))).toEqual(channelRefusal(404, text, "basic.consume"));
  });

  it("deals the messages round among consumers", async () => {
    const publisher = await openConfirmChannel();
    const queue = await newQueue(publisher);
    const consumers: Consumer[] = [];
    for (let i = 0; i < 3; i++) {
      const channel = await openChannel();
      await channel.prefetch(4);
      consumers.push(await consume(channel, queue));
    }
    await send(publisher, queue, ...Array.from({ length: 12 }, (_, i) => `${i}`));
    await until(() => consumers.every(({ messages }) => messages.length === 4));
  });

  it("with no-ack keeps nothing to be settled", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    const consumer = await consume(channel, queue, { noAck: true });
    await consumer.received(2);
    await channel.close();
    expect(await drain(await openChannel(), queue)).toEqual([]);
  });

  it("with no-ack is not bounded by prefetch", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await channel.prefetch(1);
    await send(channel, queue, ..."abcdefgh");
    await (await consume(channel, queue, { noAck: true })).received(8);
  });

  it("ignores no-local", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const consumer = await consume(channel, queue, { noLocal: true });
    await send(channel, queue, "own");
    expect(await consumer.received(1)).toEqual(["own"]);
  });

  const inUse = (queue: string) =>
    channelRefusal(403, `ACCESS_REFUSED - queue '${queue}' in vhost '/' in exclusive use`, "basic.consume");

  it("exclusively, refuses every other consumer with 403 until it is cancelled", async () => {
    const [one, two] = [await openChannel(), await openChannel()];
    const queue = await newQueue(one);
    const exclusive = await consume(one, queue, { exclusive: true });
    expect(await refusalOf(two, () => consume(two, queue))).toEqual(inUse(queue));
    await one.cancel(exclusive.tag);
    await consume(await openChannel(), queue);
  });

  it("exclusively, is refused with 403 where someone consumes", async () => {
    const [one, two] = [await openChannel(), await openChannel()];
    const queue = await newQueue(one);
    await consume(one, queue);
    expect(await refusalOf(two, () => consume(two, queue, { exclusive: true }))).toEqual(inUse(queue));
  });
});

describe("basic.cancel", () => {
  it("ends the deliveries and keeps what was delivered for settling", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a");
    const consumer = await consume(channel, queue);
    await consumer.received(1);
    await channel.cancel(consumer.tag);
    await send(channel, queue, "b");
    await pause();
    expect(consumer.texts).toEqual(["a"]);
    channel.ack(first(consumer));
    await channel.close();
    expect(await drain(await openChannel(), queue)).toEqual(["b"]);
  });

  it("answers a tag that is not in use", async () => {
    const channel = await openChannel();
    expect(await channel.cancel("nobody")).toEqual({ consumerTag: "nobody" });
  });

  it("frees the tag", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    for (let i = 0; i < 3; i++) await channel.cancel((await consume(channel, queue, { consumerTag: "mine" })).tag);
  });

  it("hands on at once what is not yet delivered", async () => {
    const [one, two] = [await openConfirmChannel(), await openChannel()];
    const queue = await newQueue(one);
    await one.prefetch(2);
    const leaving = await consume(one, queue);
    await send(one, queue, "a", "b", "c", "d");
    await leaving.received(2);
    await one.cancel(leaving.tag);
    expect(await (await consume(two, queue)).received(2)).toEqual(["c", "d"]);
  });
});

describe("basic.get", () => {
  it("answers false where the queue is empty", async () => {
    const channel = await openChannel();
    expect(await channel.get(await newQueue(channel))).toBe(false);
  });

  it("takes one in order, to be settled or not", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    const message = await get(channel, queue);
    expect(message.content.toString()).toBe("a");
    expect(message.fields).toMatchObject({ deliveryTag: 1, redelivered: false, exchange: "", routingKey: queue });
    expect(await channel.get(queue, { noAck: true })).toMatchObject({ fields: { deliveryTag: 2 } });
    channel.ack(message);
    expect(await channel.get(queue)).toBe(false);
  });

  it("refuses a queue that does not exist with 404", async () => {
    const channel = await openChannel();
    const queue = queueName();
    const text = `NOT_FOUND - no queue '${queue}' in vhost '/'`;
    expect(await refusalOf(channel, () => channel.get(queue))).toEqual(channelRefusal(404, text, "basic.get"));
  });
});

describe("basic.qos", () => {
  it("bounds what a consumer holds, and an ack makes room", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await channel.prefetch(2);
    const consumer = await consume(channel, queue);
    await send(channel, queue, ..."abcde");
    await consumer.received(2);
    await pause();
    expect(consumer.texts).toEqual(["a", "b"]);
    channel.ack(first(consumer));
    expect(await consumer.received(3)).toEqual(["a", "b", "c"]);
    channel.nack(consumer.messages[1] as Message, false, false);
    expect(await consumer.received(4)).toEqual(["a", "b", "c", "d"]);
  });

  it("holds for each consumer declared after it, not those before", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const unbounded = await consume(channel, queue);
    await channel.prefetch(1);
    await send(channel, queue, ..."abcde");
    await unbounded.received(5);
    await channel.cancel(unbounded.tag);
    const bounded = await consume(channel, queue);
    await send(channel, queue, "f", "g");
    await bounded.received(1);
    await pause();
    expect(bounded.texts).toEqual(["f"]);
  });

  it("counts each consumer by itself", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await channel.prefetch(1);
    const [one, two] = [await consume(channel, queue), await consume(channel, queue)];
    await send(channel, queue, ..."abcd");
    await until(() => one.messages.length === 1 && two.messages.length === 1);
    await pause();
    expect(one.messages.length + two.messages.length).toBe(2);
  });

  it("global bounds the channel as a whole", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await channel.prefetch(3, true);
    const [one, two] = [await consume(channel, queue), await consume(channel, queue)];
    await send(channel, queue, ..."abcdef");
    const all = () => [...one.messages, ...two.messages];
    await until(() => all().length === 3);
    await pause();
    expect(all().length).toBe(3);
    channel.ack(all()[0] as Message);
    await until(() => all().length === 4);
  });

  it("0 is unlimited", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await channel.prefetch(1);
    await channel.prefetch(0);
    await send(channel, queue, ...Array.from({ length: 200 }, (_, i) => `${i}`));
    await (await consume(channel, queue)).received(200);
  });

  it("does not bound basic.get", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await channel.prefetch(1);
    await send(channel, queue, "a", "b", "c");
    for (let i = 0; i < 3; i++) await get(channel, queue);
  });
});
