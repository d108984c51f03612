// Publisher confirms: each publish once, in order, whatever became of it.
import { describe, expect, it } from "vitest";
import { differs } from "./differences.ts";
import { connect, newExchange, newQueue, openConfirmChannel, until } from "./session.ts";

interface Ack {
  readonly deliveryTag: number;
  readonly multiple: boolean;
}

/** Each tag once for each time that it was confirmed; `multiple` confirms what is outstanding up to its tag. */
function confirmedTags(acks: readonly Ack[], published: number): number[] {
  const outstanding = new Set(Array.from({ length: published }, (_, i) => i + 1));
  const tags: number[] = [];
  for (const { deliveryTag, multiple } of acks) {
    const confirmed = multiple ? [...outstanding].filter((tag) => tag <= deliveryTag) : [deliveryTag];
    for (const tag of confirmed) outstanding.delete(tag);
    tags.push(...confirmed);
  }
  return tags;
}

describe("confirm.select", () => {
  it("confirms each publish exactly once, routable or not", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "here");
    const acks: Ack[] = [];
    channel.on("ack", (fields) => acks.push(fields));
    for (let i = 0; i < 300; i++) channel.publish(exchange, i % 3 === 0 ? "nowhere" : "here", Buffer.from(`${i}`));
    await channel.waitForConfirms();
    const all = Array.from({ length: 300 }, (_, i) => i + 1);
    expect(confirmedTags(acks, 300).toSorted((a, b) => a - b)).toEqual(all);
    if (differs("confirms-in-order")) expect(acks.map(({ deliveryTag }) => deliveryTag)).toEqual(all);
  });

  it("counts from 1 on each channel", async () => {
    const connection = await connect();
    for (let i = 0; i < 2; i++) {
      const channel = await openConfirmChannel(connection);
      const exchange = await newExchange(channel, "fanout");
      const tags: number[] = [];
      channel.on("ack", ({ deliveryTag }) => tags.push(deliveryTag));
      channel.publish(exchange, "", Buffer.from("x"));
      await channel.waitForConfirms();
      expect(tags).toEqual([1]);
    }
  });

  it("calls each publish's callback", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    const errors: unknown[] = [];
    for (let i = 0; i < 10; i++) channel.sendToQueue(queue, Buffer.from("x"), {}, (error) => errors.push(error));
    await until(() => errors.length === 10);
    expect(errors.every((error) => error === null)).toBe(true);
  });

  it("carries 10,000 in flight", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    let acked = 0;
    for (let i = 0; i < 10_000; i++) {
      channel.sendToQueue(queue, Buffer.from(`${i}`), {}, (error) => {
        if (error === null) acked++;
      });
    }
    await channel.waitForConfirms();
    expect(acked).toBe(10_000);
    await until(async () => (await channel.checkQueue(queue)).messageCount === 10_000);
  });

  it("a confirmed message is in the queue for every other connection", async () => {
    const [publisher, reader] = [await openConfirmChannel(), await openConfirmChannel()];
    const queue = await newQueue(publisher);
    for (let i = 0; i < 30; i++) {
      publisher.sendToQueue(queue, Buffer.from(`${i}`));
      await publisher.waitForConfirms();
      const message = await reader.get(queue, { noAck: true });
      expect(message !== false && message.content.toString()).toBe(`${i}`);
    }
  });
});
