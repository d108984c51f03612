// Exclusive and auto-delete queues: who may use them, and when they go.

import type { MethodName } from "@amqp/codec";
import type { Channel } from "amqplib";
import { describe, expect, it } from "vitest";
import { consume } from "./consumer.ts";
import { differs } from "./differences.ts";
import { channelRefusal, refusalOf } from "./refusal.ts";
import { connect, get, newExchange, openChannel, openConfirmChannel, queueName, send, until } from "./session.ts";

async function exists(queue: string): Promise<boolean> {
  const channel = await openChannel();
  return channel.checkQueue(queue).then(
    () => true,
    () => false,
  );
}

describe("an exclusive queue", () => {
  const REST =
    "It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.";
  const locked = (queue: string, method: MethodName) =>
    channelRefusal(
      405,
      `RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '${queue}' in vhost '/'. ${REST}`,
      method,
    );

  const uses: [MethodName, string, (channel: Channel, queue: string) => Promise<unknown>][] = [
    ["queue.declare", "an equal declaration", (channel, queue) => channel.assertQueue(queue, { exclusive: true })],
    [
      "queue.declare",
      "an unequal declaration",
      (channel, queue) => channel.assertQueue(queue, { durable: false, autoDelete: true }),
    ],
    ["queue.declare", "a passive declaration", (channel, queue) => channel.checkQueue(queue)],
    ["queue.delete", "deletion", (channel, queue) => channel.deleteQueue(queue)],
    ["queue.purge", "purging", (channel, queue) => channel.purgeQueue(queue)],
    ["basic.consume", "consuming", (channel, queue) => channel.consume(queue, () => undefined)],
    ["basic.get", "getting", (channel, queue) => channel.get(queue)],
    [
      "queue.bind",
      "binding",
      async (channel, queue) => {
        const exchange = await newExchange(channel, "fanout");
        await channel.bindQueue(queue, exchange, "");
      },
    ],
  ];
  it.each(uses)("refuses another connection's %s (%s) with 405", async (method, _, use) => {
    const owner = await openChannel();
    const queue = queueName();
    await owner.assertQueue(queue, { exclusive: true });
    const other = await openChannel();
    expect(await refusalOf(other, () => use(other, queue))).toEqual(locked(queue, method));
  });

  it("is open to every channel of its connection", async () => {
    const connection = await connect();
    const [first, second] = [await openChannel(connection), await openConfirmChannel(connection)];
    const queue = queueName();
    await first.assertQueue(queue, { exclusive: true });
    await second.assertQueue(queue, { exclusive: true });
    await send(second, queue, "hello");
    expect((await get(second, queue)).content.toString()).toBe("hello");
  });

  it("takes what other connections publish", async () => {
    const owner = await openChannel();
    const queue = queueName();
    await owner.assertQueue(queue, { exclusive: true });
    await send(await openConfirmChannel(), queue, "hello");
    expect((await get(owner, queue)).content.toString()).toBe("hello");
  });

  it("refuses its owner a declaration that is not exclusive with 405", async () => {
    const owner = await openChannel();
    const queue = queueName();
    await owner.assertQueue(queue, { exclusive: true });
    expect(await refusalOf(owner, () => owner.assertQueue(queue))).toEqual(locked(queue, "queue.declare"));
  });

  it("refuses an exclusive declaration of a shared queue with 405, before any 406", async () => {
    const owner = await openChannel();
    const queue = queueName();
    await owner.assertQueue(queue);
    const declare = () => owner.assertQueue(queue, { exclusive: true, durable: false });
    expect(await refusalOf(owner, declare)).toEqual(locked(queue, "queue.declare"));
  });

  it("outlives its channel and goes with its connection", async () => {
    const connection = await connect();
    const channel = await openChannel(connection);
    const queue = queueName();
    await channel.assertQueue(queue, { exclusive: true });
    await channel.close();
    const second = await openChannel(connection);
    await second.checkQueue(queue);
    await connection.close();
    expect(await exists(queue)).toBe(false);
  });

  it("may be declared by another once its connection is gone", async () => {
    const connection = await connect();
    const queue = queueName();
    await (await openChannel(connection)).assertQueue(queue, { exclusive: true });
    await connection.close();
    await (await openChannel()).assertQueue(queue, { exclusive: true });
  });
});

describe("an auto-delete queue", () => {
  it("stays while no consumer ever came", async () => {
    const connection = await connect();
    const queue = queueName();
    await (await openChannel(connection)).assertQueue(queue, { autoDelete: true });
    await connection.close();
    expect(await exists(queue)).toBe(true);
  });

  it("goes when its last consumer is cancelled, not before", async () => {
    const channel = await openChannel();
    const queue = queueName();
    await channel.assertQueue(queue, { autoDelete: true });
    const [first, second] = [await consume(channel, queue), await consume(channel, queue)];
    await channel.cancel(first.tag);
    expect(await exists(queue)).toBe(true);
    await channel.cancel(second.tag);
    await until(async () => !(await exists(queue)));
  });

  it.each(["channel", "connection"])("goes when its last consumer's %s closes", async (what) => {
    const connection = await connect();
    const channel = await openChannel(connection);
    const queue = queueName();
    await channel.assertQueue(queue, { autoDelete: true });
    await consume(channel, queue);
    await (what === "channel" ? channel : connection).close();
    await until(async () => !(await exists(queue)));
  });

  it("does not go with basic.get", async () => {
    const channel = await openChannel();
    const queue = queueName();
    await channel.assertQueue(queue, { autoDelete: true });
    await channel.get(queue);
    expect(await exists(queue)).toBe(true);
  });
});

describe("a name that starts with amq.", () => {
  it("is reserved as a queue's", async () => {
    const channel = await openChannel();
    const refusal = await refusalOf(channel, () => channel.assertQueue("amq.mine", { exclusive: true }));
    expect(refusal).toMatchObject({ scope: "channel", method: "queue.declare" });
    if (differs("reserved-names")) expect([403, 406]).toContain(refusal.code);
    else expect(refusal.text).toBe("ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'");
  });

  it("is reserved as an exchange's", async () => {
    const channel = await openChannel();
    const refusal = await refusalOf(channel, () => channel.assertExchange("amq.mine", "direct"));
    expect(refusal).toMatchObject({ scope: "channel", method: "exchange.declare" });
    if (differs("reserved-names")) expect([403, 406]).toContain(refusal.code);
    else expect(refusal.text).toBe("ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'");
  });
});
