// The laws of bindings, one by one, where bindings.test.ts tries them all at once: a binding takes what is published
// while it stands, and nothing that happens to it later changes what a queue holds. Each also holds on RabbitMQ.
import { afterAll, describe, expect, it } from "vitest";
import {
  drain,
  exchangeName,
  get,
  newExchange,
  newQueue,
  openConfirmChannel,
  publish,
  queueName,
  send,
} from "../clients/session.ts";
import { untilStreamEmpty } from "../crosswire/bus.ts";
import { AmqpSocket } from "../harness/socket.ts";
import { target } from "../harness/target.ts";

afterAll(async () => {
  const { natsUrl } = await target();
  if (natsUrl !== undefined) await untilStreamEmpty(natsUrl, 10_000);
});

describe("a binding", () => {
  it("takes nothing older than itself, although another queue still holds it", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const [early, late] = [await newQueue(channel), await newQueue(channel)];
    await channel.bindQueue(early, exchange, "a.#");
    await publish(channel, exchange, "a.b", "before");
    await channel.bindQueue(late, exchange, "a.#");
    await publish(channel, exchange, "a.b", "after");
    expect(await drain(channel, late)).toEqual(["after"]);
    expect(await drain(channel, early)).toEqual(["before", "after"]);
  });

  it("takes nothing older on a queue that lags behind on another binding", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const [lagging, other] = [await newQueue(channel), await newQueue(channel)];
    await channel.bindQueue(lagging, exchange, "a");
    await channel.bindQueue(other, exchange, "b");
    await publish(channel, exchange, "a", "a1");
    await publish(channel, exchange, "b", "b1");
    await channel.bindQueue(lagging, exchange, "b");
    await publish(channel, exchange, "b", "b2");
    expect((await channel.checkQueue(lagging)).messageCount).toBe(2);
    expect(await drain(channel, lagging)).toEqual(["a1", "b2"]);
    expect(await drain(channel, other)).toEqual(["b1", "b2"]);
  });

  it("once undone leaves what it queued, and takes no more", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "fanout");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "");
    await publish(channel, exchange, "", "1", "2", "3");
    await channel.unbindQueue(queue, exchange, "");
    await publish(channel, exchange, "", "4");
    expect((await channel.checkQueue(queue)).messageCount).toBe(3);
    expect(await drain(channel, queue)).toEqual(["1", "2", "3"]);
  });

  it("once undone leaves what is held and what was given back", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "k");
    await publish(channel, exchange, "k", "given back", "held", "ready");
    const first = await get(channel, queue);
    const second = await get(channel, queue);
    channel.nack(first);
    await channel.unbindQueue(queue, exchange, "k");
    await publish(channel, exchange, "k", "too late");
    // Long enough for a cursor to be narrowed at the wrong moment.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect((await channel.checkQueue(queue)).messageCount).toBe(2);
    const again = await get(channel, queue);
    expect([again.content.toString(), again.fields.redelivered]).toEqual(["given back", true]);
    channel.nack(second);
    channel.ack(again);
    expect(new Set(await drain(channel, queue))).toEqual(new Set(["held", "ready"]));
  });

  it("undone and made again leaves a gap", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    for (let round = 0; round < 3; round++) {
      await channel.bindQueue(queue, exchange, "#");
      await publish(channel, exchange, "k", `in ${round}`);
      await channel.unbindQueue(queue, exchange, "#");
      await publish(channel, exchange, "k", `out ${round}`);
    }
    expect((await channel.checkQueue(queue)).messageCount).toBe(3);
    expect(await drain(channel, queue)).toEqual(["in 0", "in 1", "in 2"]);
  });

  it("beside others that match too gives one copy, and one copy still when one of them goes", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    for (const key of ["#", "a.#", "a.*", "*.b", "a.b"]) await channel.bindQueue(queue, exchange, key);
    await publish(channel, exchange, "a.b", "1");
    for (const key of ["#", "a.b", "*.b"]) await channel.unbindQueue(queue, exchange, key);
    await publish(channel, exchange, "a.b", "2");
    await publish(channel, exchange, "c.b", "for nobody");
    expect(await drain(channel, queue)).toEqual(["1", "2"]);
  });

  it("comes by the thousand at once", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    // Sent without waiting for each answer, which amqplib would do.
    const socket = await AmqpSocket.open(await target());
    await socket.channel(1);
    for (let key = 0; key < 1_000; key++) socket.send(1, "queue.bind", { queue, exchange, routingKey: `k${key}.*` });
    for (let key = 0; key < 1_000; key++) await socket.expect("queue.bind-ok", 60_000);
    socket.destroy();
    await publish(channel, exchange, "k0.x", "first");
    await publish(channel, exchange, "k999.x", "last");
    await publish(channel, exchange, "k1000.x", "for nobody");
    expect(await drain(channel, queue)).toEqual(["first", "last"]);
  });
});

describe("what is declared again", () => {
  it("as a queue revives neither bindings nor messages", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "fanout");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "");
    await publish(channel, exchange, "", "1");
    await send(channel, queue, "2");
    expect((await channel.deleteQueue(queue)).messageCount).toBe(2);
    await publish(channel, exchange, "", "3");
    expect((await channel.assertQueue(queue)).messageCount).toBe(0);
    await publish(channel, exchange, "", "4");
    expect(await drain(channel, queue)).toEqual([]);
  });

  it("as an exchange revives no binding, and keeps what the old one queued", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "fanout");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "");
    await publish(channel, exchange, "", "1", "2");
    await channel.deleteExchange(exchange);
    await channel.assertExchange(exchange, "direct");
    await publish(channel, exchange, "", "3");
    expect((await channel.checkQueue(queue)).messageCount).toBe(2);
    await channel.bindQueue(queue, exchange, "k");
    await publish(channel, exchange, "", "4");
    await publish(channel, exchange, "k", "5");
    expect(await drain(channel, queue)).toEqual(["1", "2", "5"]);
  });

  it("as an exchange of another kind gives old messages no new meaning", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "a");
    await publish(channel, exchange, "a", "direct");
    await channel.deleteExchange(exchange);
    await channel.assertExchange(exchange, "fanout");
    await channel.bindQueue(queue, exchange, "a");
    await publish(channel, exchange, "b", "fanout");
    expect(await drain(channel, queue)).toEqual(["direct", "fanout"]);
  });
});

describe("deleting an exchange", () => {
  it("touches no queue of its name", async () => {
    const channel = await openConfirmChannel();
    const name = exchangeName();
    const queue = queueName();
    await channel.assertExchange(name, "topic");
    await channel.assertExchange(queue, "topic");
    await channel.assertQueue(name);
    await channel.assertQueue(queue);
    await channel.bindQueue(queue, name, "#");
    await channel.bindQueue(name, queue, "#");
    await send(channel, name, "straight");
    await publish(channel, queue, "k", "over the other");
    await channel.deleteExchange(name);
    expect((await channel.checkQueue(name)).messageCount).toBe(2);
    await send(channel, name, "straight again");
    await publish(channel, queue, "k", "over the other again");
    expect(await drain(channel, name)).toEqual([
      "straight",
      "over the other",
      "straight again",
      "over the other again",
    ]);
    await channel.deleteExchange(queue);
    await channel.deleteQueue(name);
  });

  it("leaves what is held over it", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "#");
    await publish(channel, exchange, "k", "held");
    const held = await get(channel, queue);
    await channel.deleteExchange(exchange);
    channel.nack(held);
    const again = await get(channel, queue);
    expect([again.content.toString(), again.fields.redelivered, again.fields.exchange]).toEqual([
      "held",
      true,
      exchange,
    ]);
    channel.ack(again);
  });
});

describe("a queue's consumer, while bindings change", () => {
  it("gets each message that was published while a binding stood, once, in order, and no other", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    const expected: string[] = [];
    const got: string[] = [];
    await channel.consume(queue, (message) => {
      if (message === null) return;
      got.push(message.content.toString());
      channel.ack(message);
    });
    for (let round = 0; round < 30; round++) {
      await channel.bindQueue(queue, exchange, "k");
      await publish(channel, exchange, "k", `in ${round}`);
      expected.push(`in ${round}`);
      await channel.unbindQueue(queue, exchange, "k");
      await publish(channel, exchange, "k", `out ${round}`);
    }
    await expect.poll(() => got.length, { timeout: 5_000 }).toBeGreaterThanOrEqual(expected.length);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(got).toEqual(expected);
  });
});
