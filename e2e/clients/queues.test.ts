// queue.declare, delete and purge: names, flags, passive, equivalence, counts; in RabbitMQ's words.
import { describe, expect, it } from "vitest";
import { consume } from "./consumer.ts";
import { differs } from "./differences.ts";
import { channelRefusal, refusalOf } from "./refusal.ts";
import {
  connect,
  drain,
  get,
  newQueue,
  openChannel,
  openConfirmChannel,
  publish,
  queueName,
  send,
  until,
} from "./session.ts";

describe("queue.declare", () => {
  it.each([
    ["durable", { durable: true }],
    ["transient", { durable: false }],
    ["auto-delete", { autoDelete: true }],
    ["exclusive", { exclusive: true }],
    ["exclusive and auto-delete", { exclusive: true, autoDelete: true }],
    ["classic", { arguments: { "x-queue-type": "classic" } }],
    ["quorum", { arguments: { "x-queue-type": "quorum" } }],
  ])("declares a queue that is %s, again with the same flags", async (_, options) => {
    const channel = await openChannel();
    const queue = queueName();
    const empty = { queue, messageCount: 0, consumerCount: 0 };
    expect(await channel.assertQueue(queue, options)).toEqual(empty);
    expect(await channel.assertQueue(queue, options)).toEqual(empty);
    await channel.deleteQueue(queue);
  });

  const IN = "in vhost '/': received";
  const QUORUM = { "x-queue-type": "quorum" };
  it.each([
    ["durable", { durable: false }, `${IN} 'false' but current is 'true'`],
    ["auto_delete", { autoDelete: true }, `${IN} 'true' but current is 'false'`],
    ["x-queue-type", { arguments: QUORUM }, `${IN} 'quorum' but current is 'classic'`],
  ])("refuses another %s than declared with 406", async (arg, options, rest) => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    expect(await refusalOf(channel, () => channel.assertQueue(queue, options))).toEqual(
      channelRefusal(
        406,
        `PRECONDITION_FAILED - inequivalent arg '${arg}' for queue '${queue}' ${rest}`,
        "queue.declare",
      ),
    );
  });

  it("refuses a classic declaration of a quorum queue with 406", async () => {
    const channel = await openChannel();
    const queue = queueName();
    await channel.assertQueue(queue, { arguments: QUORUM });
    const refusal = await refusalOf(channel, () => channel.assertQueue(queue));
    const text = `inequivalent arg 'x-queue-type' for queue '${queue}' ${IN} 'classic' but current is 'quorum'`;
    expect(refusal).toEqual(channelRefusal(406, `PRECONDITION_FAILED - ${text}`, "queue.declare"));
  });

  it("names durable first where several things differ", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    const refusal = await refusalOf(channel, () => channel.assertQueue(queue, { durable: false, autoDelete: true }));
    expect(refusal.text).toContain("inequivalent arg 'durable'");
  });

  it("takes x-queue-type=classic for what a queue is anyway", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    await channel.assertQueue(queue, { arguments: { "x-queue-type": "classic" } });
  });

  it.each([
    ["exclusive", { exclusive: true, arguments: QUORUM }, "exclusive-owner"],
    ["transient", { durable: false, arguments: QUORUM }, "non-durable"],
  ])("refuses a quorum queue that is %s with 406", async (_, options, property) => {
    const channel = await openChannel();
    const queue = queueName();
    const refusal = await refusalOf(channel, () => channel.assertQueue(queue, options));
    const text = `PRECONDITION_FAILED - invalid property '${property}' for queue '${queue}' in vhost '/'`;
    expect(refusal).toEqual(channelRefusal(406, text, "queue.declare"));
  });

  it("refuses an unknown x-queue-type with 406", async () => {
    const channel = await openChannel();
    const queue = queueName();
    const options = { arguments: { "x-queue-type": "nonsense" } };
    const refusal = await refusalOf(channel, () => channel.assertQueue(queue, options));
    const text = `invalid arg 'x-queue-type' for queue '${queue}' in vhost '/': "unsupported queue type 'nonsense'"`;
    expect(refusal).toEqual(channelRefusal(406, `PRECONDITION_FAILED - ${text}`, "queue.declare"));
  });

  it.each([
    ["x-message-ttl", 60_000],
    ["x-expires", 60_000],
    ["x-max-length", 10],
    ["x-max-priority", 5],
    ["x-dead-letter-exchange", "amq.fanout"],
  ])("refuses %s where it is not built, and names it", async (argument, value) => {
    const channel = await openChannel();
    const queue = queueName();
    const declare = () => channel.assertQueue(queue, { arguments: { [argument]: value } });
    if (!differs("queue-arguments")) {
      await declare();
      return;
    }
    const refusal = await refusalOf(channel, declare);
    expect(refusal).toMatchObject({ scope: "channel", code: 540, method: "queue.declare" });
    expect(refusal.text).toContain(argument);
  });

  it("names a queue itself, another name each time", async () => {
    const channel = await openChannel();
    const first = await channel.assertQueue("", { exclusive: true });
    const second = await channel.assertQueue("", { exclusive: true });
    expect(first.queue).toMatch(differs("server-names") ? /^amq-gen-[\w-]{10,}$/ : /^amq\.gen-[\w-]{22}$/);
    expect(second.queue).not.toBe(first.queue);
  });

  it("answers a passive declare with the counts, whatever the flags", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    expect(
      await until(async () => {
        const counts = await channel.checkQueue(queue);
        return counts.messageCount === 2 && counts;
      }),
    ).toEqual({ queue, messageCount: 2, consumerCount: 0 });
  });

  it("refuses a passive declare of what does not exist with 404", async () => {
    const channel = await openChannel();
    const queue = queueName();
    expect(await refusalOf(channel, () => channel.checkQueue(queue))).toEqual(
      channelRefusal(404, `NOT_FOUND - no queue '${queue}' in vhost '/'`, "queue.declare"),
    );
  });
});

describe("counts", () => {
  it("declare-ok counts ready messages and consumers, not what is unacknowledged", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b", "c");
    await get(channel, queue);
    expect(await channel.assertQueue(queue)).toEqual({ queue, messageCount: 2, consumerCount: 0 });
    await channel.prefetch(1);
    const consumer = await consume(channel, queue);
    await consumer.received(1);
    expect(await channel.assertQueue(queue)).toEqual({ queue, messageCount: 1, consumerCount: 1 });
  });

  it("get-ok counts what is left", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b", "c");
    expect((await get(channel, queue)).fields).toMatchObject({ messageCount: 2 });
    expect((await get(channel, queue)).fields).toMatchObject({ messageCount: 1 });
    expect((await get(channel, queue)).fields).toMatchObject({ messageCount: 0 });
  });

  it("counts what was requeued", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    channel.nack(await get(channel, queue));
    await until(async () => (await channel.checkQueue(queue)).messageCount === 2);
  });
});

describe("queue.delete", () => {
  it("counts 0 where nothing is to be deleted", async () => {
    const channel = await openChannel();
    expect(await channel.deleteQueue(queueName())).toEqual({ messageCount: 0 });
    expect(await channel.deleteQueue(queueName(), { ifEmpty: true, ifUnused: true })).toEqual({ messageCount: 0 });
  });

  it("counts the ready messages that it drops", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b", "c");
    await get(channel, queue);
    expect(await channel.deleteQueue(queue)).toEqual({ messageCount: 2 });
  });

  it("leaves nothing behind for a queue declared anew", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a", "b");
    await channel.deleteQueue(queue);
    expect((await channel.assertQueue(queue)).messageCount).toBe(0);
    expect(await drain(channel, queue)).toEqual([]);
  });

  it("lets a tag of the deleted queue be acknowledged", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a");
    const message = await get(channel, queue);
    await channel.deleteQueue(queue);
    channel.ack(message);
    await channel.assertQueue(queue); // the channel still stands
  });

  it("refuses if-empty with 406 while something is ready", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a");
    expect(await refusalOf(channel, () => channel.deleteQueue(queue, { ifEmpty: true }))).toEqual(
      channelRefusal(406, `PRECONDITION_FAILED - queue '${queue}' in vhost '/' not empty`, "queue.delete"),
    );
  });

  it("refuses if-unused with 406 while someone consumes", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    await consume(channel, queue);
    expect(await refusalOf(channel, () => channel.deleteQueue(queue, { ifUnused: true }))).toEqual(
      channelRefusal(406, `PRECONDITION_FAILED - queue '${queue}' in vhost '/' in use`, "queue.delete"),
    );
  });

  it("deletes with if-empty and if-unused where both hold", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    await channel.deleteQueue(queue, { ifEmpty: true, ifUnused: true });
    expect((await refusalOf(channel, () => channel.checkQueue(queue))).code).toBe(404);
  });

  it("cancels the consumers of the queue", async () => {
    const connection = await connect();
    const [consuming, deleting] = [await openChannel(connection), await openChannel()];
    const queue = await newQueue(consuming);
    const consumer = await consume(consuming, queue);
    await deleting.deleteQueue(queue);
    await until(() => consumer.cancels === 1);
  });
});

describe("queue.purge", () => {
  it("drops and counts what is ready, and spares what is unacknowledged", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "held", "b", "c");
    const held = await get(channel, queue);
    expect(await channel.purgeQueue(queue)).toEqual({ messageCount: 2 });
    expect(await channel.purgeQueue(queue)).toEqual({ messageCount: 0 });
    channel.nack(held);
    expect(await drain(channel, queue)).toEqual(["held"]);
  });

  it("purges what was requeued", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await send(channel, queue, "a");
    channel.nack(await get(channel, queue));
    expect(await channel.purgeQueue(queue)).toEqual({ messageCount: 1 });
    await publish(channel, "", queue, "new");
    expect(await drain(channel, queue)).toEqual(["new"]);
  });

  it("refuses what does not exist with 404", async () => {
    const channel = await openChannel();
    const queue = queueName();
    expect(await refusalOf(channel, () => channel.purgeQueue(queue))).toEqual(
      channelRefusal(404, `NOT_FOUND - no queue '${queue}' in vhost '/'`, "queue.purge"),
    );
  });
});
