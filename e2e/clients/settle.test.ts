// basic.ack, nack, reject, recover: what they settle, what they refuse, and the order after requeue.

import type { Message } from "amqplib";
import { describe, expect, it } from "vitest";
import { consume } from "./consumer.ts";
import { differs } from "./differences.ts";
import { channelRefusal, refusalOf } from "./refusal.ts";
import {
  connect,
  drain,
  dropSocket,
  get,
  newQueue,
  openChannel,
  openConfirmChannel,
  pause,
  send,
  until,
} from "./session.ts";

/** A delivery that never was. */
const unknown = { fields: { deliveryTag: 7 } } as Message;

describe("settling", () => {
  it("ack settles one, and it never comes again", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    channel.ack(await get(channel, queue));
    await channel.close();
    expect(await drain(await openChannel(), queue)).toEqual(["b"]);
  });

  it("ack with multiple settles everything up to its tag", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b", "c", "d");
    const consumer = await consume(channel, queue);
    await consumer.received(4);
    channel.ack(consumer.messages[2] as Message, true);
    await channel.close();
    expect(await drain(await openChannel(), queue)).toEqual(["d"]);
  });

  it("ack with multiple and tag 0 settles everything", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b", "c");
    const consumer = await consume(channel, queue);
    await consumer.received(3);
    channel.ackAll();
    await channel.close();
    expect(await drain(await openChannel(), queue)).toEqual([]);
  });

  it("tags are the channel's: multiple settles across its queues", async () => {
    const channel = await openConfirmChannel();
    const [first, second] = [await newQueue(channel), await newQueue(channel)];
    await send(channel, first, "a");
    await send(channel, second, "b", "c");
    await get(channel, first);
    channel.ack(await get(channel, second), true);
    await channel.close();
    const other = await openChannel();
    expect(await drain(other, first)).toEqual([]);
    expect(await drain(other, second)).toEqual(["c"]);
  });

  it("nack with requeue hands back, without drops", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "back", "dropped");
    const [back, dropped] = [await get(channel, queue), await get(channel, queue)];
    channel.nack(back, false, true);
    channel.nack(dropped, false, false);
    expect(await drain(channel, queue)).toEqual(["back"]);
    await channel.close();
    expect(await drain(await openChannel(), queue)).toEqual([]);
  });

  it("nack with multiple hands back everything up to its tag, in order", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b", "c", "d");
    const held = [await get(channel, queue), await get(channel, queue), await get(channel, queue)];
    channel.nack(held[1] as Message, true, true);
    expect(await drain(channel, queue)).toEqual(["a", "b", "d"]);
    channel.nackAll();
    expect(await drain(channel, queue)).toEqual(["c"]);
  });

  it("reject settles one, either way", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "back", "dropped");
    const [back, dropped] = [await get(channel, queue), await get(channel, queue)];
    channel.reject(dropped, false);
    channel.reject(back, true);
    expect(await drain(channel, queue)).toEqual(["back"]);
  });

  it("basic.get sees what was just handed back, flagged as redelivered", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a");
    for (let i = 0; i < 20; i++) {
      const message = await get(channel, queue);
      expect(message.fields.redelivered).toBe(i > 0);
      channel.nack(message);
    }
  });

  it("a consumer gets again what it handed back", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await channel.prefetch(1);
    const consumer = await consume(channel, queue);
    await send(channel, queue, "a");
    await consumer.received(1);
    channel.nack(consumer.messages[0] as Message);
    await consumer.received(2);
    expect(consumer.messages.map(({ fields }) => fields.redelivered)).toEqual([false, true]);
  });

  it("what is refused by one consumer may go to another", async () => {
    const [first, second] = [await openConfirmChannel(), await openChannel()];
    const queue = await newQueue(first);
    await first.prefetch(1);
    const refusing = await consume(first, queue);
    await send(first, queue, "a");
    await refusing.received(1);
    const taking = await consume(second, queue);
    await first.cancel(refusing.tag);
    first.nack(refusing.messages[0] as Message);
    expect(await taking.received(1)).toEqual(["a"]);
  });
});

describe("an unknown delivery tag", () => {
  const text = "PRECONDITION_FAILED - unknown delivery tag 7";

  it("ack: 406", async () => {
    const channel = await openChannel();
    expect(await refusalOf(channel, () => channel.ack(unknown))).toEqual(channelRefusal(406, text, "basic.ack"));
  });

  it("nack: 406", async () => {
    const channel = await openChannel();
    expect(await refusalOf(channel, () => channel.nack(unknown))).toEqual(channelRefusal(406, text, "basic.nack"));
  });

  it("reject: 406", async () => {
    const channel = await openChannel();
    expect(await refusalOf(channel, () => channel.reject(unknown))).toEqual(channelRefusal(406, text, "basic.reject"));
  });

  it("ack twice: 406", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a");
    const message = await get(channel, queue);
    channel.ack(message);
    expect(await refusalOf(channel, () => channel.ack(message))).toEqual(
      channelRefusal(406, "PRECONDITION_FAILED - unknown delivery tag 1", "basic.ack"),
    );
  });

  it("ack of a no-ack delivery: 406", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a");
    const message = await channel.get(queue, { noAck: true });
    expect(await refusalOf(channel, () => channel.ack(message as Message))).toEqual(
      channelRefusal(406, "PRECONDITION_FAILED - unknown delivery tag 1", "basic.ack"),
    );
  });

  it("a tag of another channel: 406", async () => {
    const connection = await connect();
    const [first, second] = [await openConfirmChannel(connection), await openChannel(connection)];
    const queue = await newQueue(first);
    await send(first, queue, "a");
    const message = await get(first, queue);
    expect((await refusalOf(second, () => second.ack(message))).code).toBe(406);
  });

  it("requeues what the refused channel held", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    await get(channel, queue);
    await refusalOf(channel, () => channel.ack(unknown));
    expect(await drain(await openChannel(), queue)).toEqual(["a", "b"]);
  });

  it("0 with multiple, when nothing is held, is no error", async () => {
    const channel = await openChannel();
    channel.ackAll();
    channel.nackAll();
    await newQueue(channel);
  });

  it.each(["ack", "nack"] as const)("%s with multiple on nothing", async (verb) => {
    const channel = await openChannel();
    const settle = () => channel[verb](unknown, true);
    if (differs("multiple-on-nothing")) {
      settle();
      await newQueue(channel);
    } else {
      expect(await refusalOf(channel, settle)).toEqual(channelRefusal(406, text, `basic.${verb}`));
    }
  });
});

describe("basic.recover", () => {
  it("requeues everything that the channel holds, flagged and in order", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b", "c");
    for (let i = 0; i < 3; i++) await get(channel, queue);
    await channel.recover();
    const again = [await get(channel, queue), await get(channel, queue), await get(channel, queue)];
    expect(again.map(({ content }) => content.toString())).toEqual(["a", "b", "c"]);
    expect(again.map(({ fields }) => fields.redelivered)).toEqual([true, true, true]);
    expect(again.map(({ fields }) => fields.deliveryTag)).toEqual([4, 5, 6]);
  });

  it("delivers again to the consumer that held", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    const consumer = await consume(channel, queue);
    await consumer.received(2);
    await channel.recover();
    expect(await consumer.received(4)).toEqual(["a", "b", "a", "b"]);
  });

  it("is answered where nothing is held", async () => {
    await (await openChannel()).recover();
  });
});

describe("requeue at once, in order", () => {
  it.each(["channel.close", "connection.close", "a dropped socket"])("after %s", async (what) => {
    const connection = await connect();
    const channel = await openConfirmChannel(connection);
    const queue = await newQueue(channel);
    const texts = Array.from({ length: 20 }, (_, i) => `${i}`);
    await send(channel, queue, ...texts);
    const consumer = await consume(channel, queue);
    await consumer.received(20);
    for (const i of [3, 4, 11]) channel.ack(consumer.messages[i] as Message);
    await channel.recover().catch(() => undefined); // everything above was written to the socket and read
    await consumer.received(37);
    if (what === "channel.close") await channel.close();
    else if (what === "connection.close") await connection.close();
    else dropSocket(connection);
    const other = await openChannel();
    await until(async () => (await other.checkQueue(queue)).messageCount === 17);
    const messages: Message[] = [];
    for (let i = 0; i < 17; i++) messages.push(await get(other, queue));
    const left = texts.filter((text) => !["3", "4", "11"].includes(text));
    expect(messages.map(({ content }) => content.toString())).toEqual(left);
    expect(messages.every(({ fields }) => fields.redelivered)).toBe(true);
  });

  it("goes to a waiting consumer, before what is newer", async () => {
    const [holding, waiting] = [await openConfirmChannel(), await openChannel()];
    const queue = await newQueue(holding);
    await send(holding, queue, "a", "b");
    await get(holding, queue);
    await get(holding, queue);
    const consumer = await consume(waiting, queue);
    await pause(50);
    await holding.close();
    expect(await consumer.received(2)).toEqual(["a", "b"]);
  });

  it("what no socket was given is not flagged as redelivered", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    await channel.prefetch(1);
    const consumer = await consume(channel, queue);
    await consumer.received(1);
    await channel.close();
    const other = await openChannel();
    expect((await get(other, queue)).fields.redelivered).toBe(true);
    expect((await get(other, queue)).fields.redelivered).toBe(false);
  });
});
