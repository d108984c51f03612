// What AMQP's declarations become on the bus, read back from the bus itself: stream, consumers, filters, keys. HIP §1,
// §2, §2.1; design §4 and §5. A second program, or a second replica, relies on exactly this.
import { AckPolicy, DeliverPolicy, DiscardPolicy, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  drain,
  exchangeName,
  newExchange,
  newQueue,
  openChannel,
  openConfirmChannel,
  publish,
  queueName,
  until,
} from "../clients/session.ts";
import { target } from "../harness/target.ts";
import { type Bus, openBus } from "./bus.ts";

let bus: Bus;

beforeAll(async () => {
  bus = await openBus((await target()).natsUrl ?? "");
});
afterAll(async () => await bus?.close());

describe("the stream", () => {
  it("is called AMQP, holds amqp.> on file, and keeps a message as long as a queue wants it", async () => {
    const config = await bus.streamConfig();
    expect(config).toMatchObject({
      name: "AMQP",
      subjects: ["amqp.>"],
      retention: RetentionPolicy.Interest,
      discard: DiscardPolicy.New,
      storage: StorageType.File,
      max_age: 0,
      max_msgs: -1,
      max_msgs_per_subject: -1,
    });
    // nats-server caps a stream at 1,000 consumers unless told otherwise.
    expect(config.max_consumers).toBeGreaterThan(10_000);
  });
});

describe("a queue", () => {
  it("is a durable pull consumer of its name, explicit acks, five minutes, deliver new, no bound of its own", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    const config = await bus.consumer(queue);
    expect(config).toMatchObject({
      durable_name: queue,
      ack_policy: AckPolicy.Explicit,
      ack_wait: 5 * 60 * 1_000_000_000,
      deliver_policy: DeliverPolicy.New,
      max_ack_pending: -1,
      filter_subject: `amqp._.${queue}`,
    });
    expect(config.deliver_subject).toBeUndefined();
    expect(config.filter_subjects ?? []).toEqual([]);
    expect(config.max_deliver ?? -1).toBe(-1);
  });

  it("named by the server is amq-gen- and one word", async () => {
    const channel = await openChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    expect(queue).toMatch(/^amq-gen-[A-Za-z0-9_-]+$/);
    expect(await bus.filters(queue)).toEqual([`amqp._.${queue}`]);
  });

  it("leaves no consumer behind when it is deleted", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    expect(await bus.consumers()).toContain(queue);
    await channel.deleteQueue(queue);
    expect(await bus.consumers()).not.toContain(queue);
    expect(await bus.keys(queue)).toEqual([]);
  });
});

/** HIP §2.1, row by row: kind, binding key, what the consumer's filters end in after `amqp.<exchange>`. */
const TABLE = [
  ["topic", "a.*", [".a.*"]],
  ["topic", "a.#", [".a", ".a.>"]],
  ["topic", "#", ["", ".>"]],
  ["topic", "", [""]],
  ["fanout", "anything, ignored", ["", ".>"]],
  ["fanout", "", ["", ".>"]],
  ["direct", "k", [".k"]],
  ["direct", "", [""]],
  ["topic", "*.b.*", [".*.b.*"]],
  ["topic", "a.b.c", [".a.b.c"]],
] as const;

describe("a binding", () => {
  it.each(TABLE)("of a %s with the key '%s' is the filters %j", async (kind, key, endings) => {
    const channel = await openChannel();
    const exchange = await newExchange(channel, kind);
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, key);
    const expected = [`amqp._.${queue}`, ...endings.map((ending) => `amqp.${exchange}${ending}`)];
    expect(await bus.filters(queue)).toEqual(expected.sort(ascending));
  });

  it("covered by a wider one adds no filter, and has its own again when the wider one went", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "topic");
    const queue = await newQueue(channel);
    const own = `amqp._.${queue}`;
    await channel.bindQueue(queue, exchange, "a.b");
    await channel.bindQueue(queue, exchange, "a.#");
    expect(await bus.filters(queue)).toEqual([own, `amqp.${exchange}.a`, `amqp.${exchange}.a.>`].sort(ascending));
    await channel.unbindQueue(queue, exchange, "a.#");
    await publish(channel, exchange, "a.b", "1");
    await publish(channel, exchange, "a.c", "for nobody");
    expect(await drain(channel, queue)).toEqual(["1"]);
    // The filter may linger while something might still be queued over it; here nothing is.
    const narrow = [own, `amqp.${exchange}.a.b`].sort(ascending);
    await until(async () => JSON.stringify(await bus.filters(queue)) === JSON.stringify(narrow), 15_000);
  });
});

describe("the bucket", () => {
  it("is called amqp and has one key for each exchange, queue and binding", async () => {
    const channel = await openChannel();
    const [exchange, queue] = [exchangeName(), queueName()];
    await channel.assertExchange(exchange, "topic");
    await channel.assertQueue(queue);
    for (const key of ["", "a.#", "é.*"]) await channel.bindQueue(queue, exchange, key);
    expect(await bus.keys(exchange)).toEqual(
      [`x.${exchange}`, ...["", "a.#", "é.*"].map((key) => bindingKey(queue, exchange, key))].sort(ascending),
    );
    expect(await bus.keys(`q.${queue}`)).toEqual([`q.${queue}`]);
  });

  it("tells bindings apart by their arguments", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "k");
    await channel.bindQueue(queue, exchange, "k", { note: "second" });
    const keys = await bus.keys(`b.${queue}.`);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(bindingKey(queue, exchange, "k"));
    expect(keys[1]).toMatch(new RegExp(`^${bindingKey(queue, exchange, "k")}\\.[A-Za-z0-9_-]+$`));
    await channel.unbindQueue(queue, exchange, "k");
    await publish(channel, exchange, "k", "over the second");
    expect(await drain(channel, queue)).toEqual(["over the second"]);
  });

  it("holds neither the default exchange nor any queue's binding to it", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    expect(await bus.keys(queue)).toEqual([`q.${queue}`]);
    expect((await bus.keys("x.")).filter((key) => key === "x." || key === "x._")).toEqual([]);
  });

  it("forgets what is deleted", async () => {
    const channel = await openChannel();
    const [exchange, queue] = [exchangeName(), queueName()];
    await channel.assertExchange(exchange, "fanout");
    await channel.assertQueue(queue);
    await channel.bindQueue(queue, exchange, "");
    await channel.deleteExchange(exchange);
    expect(await bus.keys(`x.${exchange}`)).toEqual([]);
    await channel.deleteQueue(queue);
    expect(await bus.keys(queue)).toEqual([]);
  });

  it("shows that somebody serves: a presence lease", async () => {
    const leases = (await bus.keys("r.")).filter((key) => key.startsWith("r."));
    expect(leases).toHaveLength(1);
  });
});

/** `b.<queue>.<exchange>.k<key in base64url>` (design §4). */
function bindingKey(queue: string, exchange: string, key: string): string {
  return `b.${queue}.${exchange}.k${Buffer.from(key).toString("base64url")}`;
}

function ascending(a: string, b: string): number {
  return a < b ? -1 : 1;
}
