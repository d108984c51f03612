/** Class basic (60): publishing, consuming, settling. Separate as every class is; publishing has a file of its own. */
import { randomBytes } from "node:crypto";
import type { Outcome as Ending } from "../../core/message.ts";
import { isRefusal, type Refusal, refuse } from "../../refusals.ts";
import { consumerArguments } from "../arguments.ts";
import type { Channel } from "../channel.ts";
import { Consumer } from "../consumer.ts";
import type { Handlers } from "../handler.ts";
import { REPLY_TO_QUEUE } from "../publishing.ts";
import { settle } from "../settling.ts";

export const BASIC: Handlers<"basic"> = {
  "basic.publish": (channel, fields, content) => channel.publishing.publish(fields, content),

  "basic.qos": (channel, { prefetchSize, prefetchCount, global }) => {
    if (prefetchSize !== 0) return refuse("prefetch-size", { wanted: `${prefetchSize}` });
    if (global) channel.prefetch.limit(prefetchCount);
    else channel.prefetchCount = prefetchCount;
    channel.reply("basic.qos-ok", {});
    return undefined;
  },

  "basic.consume": async (channel, fields) => {
    if (fields.queue === REPLY_TO_QUEUE) return refuse("direct-reply-to");
    const queue = channel.queueName(fields.queue);
    if (isRefusal(queue)) return queue;
    const { quota } = channel.connection;
    const tag = fields.consumerTag === "" ? `amq.ctag-${randomBytes(16).toString("base64url")}` : fields.consumerTag;
    if (channel.consumers.has(tag)) return refuse("consumer-tag-in-use", { tag });
    const refusal = consumerArguments(fields.arguments) ?? quota.forConsumer();
    if (refusal !== undefined) return refusal;

    const acknowledge = !fields.noAck;
    const consumer = new Consumer(channel, { tag, acknowledge, prefetchCount: channel.prefetchCount });
    const { exclusive } = fields;
    const options = { acknowledge, exclusive, credits: consumer.credits };
    const subscription = await channel.verbs.subscribe(channel.session, queue, consumer, options);
    if (isRefusal(subscription)) return subscription;
    if (!channel.isOpen) {
      await subscription.cancel();
      return undefined;
    }
    channel.consumers.set(tag, consumer);
    quota.consuming(1);
    if (!fields.nowait) channel.reply("basic.consume-ok", { consumerTag: tag });
    consumer.start(subscription);
    if (consumer.gone) channel.consumerGone(consumer);
    return undefined;
  },

  "basic.cancel": async (channel, { consumerTag, nowait }) => {
    const consumer = channel.consumers.get(consumerTag);
    channel.forgetConsumer(consumerTag);
    await consumer?.cancel();
    if (!nowait) channel.reply("basic.cancel-ok", { consumerTag });
    return undefined;
  },

  // The answer to our basic.cancel, which asks for none.
  "basic.cancel-ok": () => undefined,

  "basic.get": async (channel, fields) => {
    const queue = channel.queueName(fields.queue);
    if (isRefusal(queue)) return queue;
    await channel.published();
    const acknowledge = !fields.noAck;
    const got = await channel.verbs.get(channel.session, queue, { acknowledge });
    if (isRefusal(got)) return got;
    const { delivery, messages } = got;
    if (delivery === undefined) {
      channel.reply("basic.get-empty", {});
    } else if (channel.isOpen) {
      const tag = channel.unacked.allocate();
      if (acknowledge) channel.unacked.book(tag, { delivery, consumer: undefined });
      channel.connection.outbox.getOk(channel.number, tag, delivery, messages);
    } else if (acknowledge) {
      channel.verbs.requeue([delivery]);
    }
    return undefined;
  },

  "basic.ack": (channel, { deliveryTag, multiple }) => settleTag(channel, deliveryTag, multiple, "complete"),

  "basic.nack": (channel, { deliveryTag, multiple, requeue }) =>
    settleTag(channel, deliveryTag, multiple, requeue ? "requeue" : "discard"),

  "basic.reject": (channel, { deliveryTag, requeue }) =>
    settleTag(channel, deliveryTag, false, requeue ? "requeue" : "discard"),

  // Everything outstanding goes back, whatever `requeue` says (HIP §3).
  "basic.recover": (channel) => {
    settle(channel, channel.unacked.takeAll(), "requeue");
    channel.reply("basic.recover-ok", {});
    return undefined;
  },

  "basic.recover-async": () => refuse("recover-async"),
};

/** `multiple` settles all up to the tag, 0 meaning all there are; that none is left is no error then (HIP §3). */
function settleTag(channel: Channel, deliveryTag: bigint, multiple: boolean, how: Ending): Refusal | undefined {
  const tag = Number(deliveryTag);
  if (multiple) {
    settle(channel, tag === 0 ? channel.unacked.takeAll() : channel.unacked.takeUpTo(tag), how);
    return undefined;
  }
  const held = channel.unacked.take(tag);
  if (held === undefined) return refuse("unknown-tag", { tag: `${deliveryTag}` });
  settle(channel, [held], how);
  return undefined;
}
