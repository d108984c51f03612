/**
 * Class queue (50). Each waits for the channel's publishes: what was published before is counted, bound or not, purged
 * (design §5). Separate as every class is.
 */
import type { FieldsOf } from "@amqp/codec";
import type { BindingSpec } from "../../core/verbs.ts";
import { isRefusal, type Refusal, refuse } from "../../refusals.ts";
import { canonical, queueArguments } from "../arguments.ts";
import type { Channel } from "../channel.ts";
import type { Handlers } from "../handler.ts";
import { REPLY_TO_QUEUE } from "../publishing.ts";

export const QUEUE: Handlers<"queue"> = {
  "queue.declare": async (channel, fields) => {
    if (fields.queue === REPLY_TO_QUEUE) return refuse("direct-reply-to");
    await channel.published();
    const declared = fields.passive
      ? await channel.verbs.checkQueue(channel.session, fields.queue)
      : await declare(channel, fields);
    if (isRefusal(declared)) return declared;
    const { name: queue, messages: messageCount, consumers: consumerCount } = declared;
    channel.lastQueue = queue;
    if (!fields.nowait) channel.reply("queue.declare-ok", { queue, messageCount, consumerCount });
    return undefined;
  },

  "queue.bind": async (channel, fields) => {
    await channel.published();
    // Those that wait right behind it go with it: one update for all (design §4, BIND).
    const binds = [fields, ...channel.takeBinds().map((method) => method.fields)];
    const specs: BindingSpec[] = [];
    let refusal = channel.connection.quota.forBindings(binds.length);
    for (const bind of refusal === undefined ? binds : []) {
      const spec = toBinding(channel, bind);
      if (isRefusal(spec)) {
        refusal = spec;
        break;
      }
      specs.push(spec);
    }
    const bound = specs.length > 0 ? await channel.verbs.bind(channel.session, specs) : { done: 0, refusal: undefined };
    for (const { queue } of specs.slice(0, bound.done)) channel.connection.quota.bound(queue);
    for (const bind of binds.slice(0, bound.done)) if (!bind.nowait) channel.reply("queue.bind-ok", {});
    return bound.refusal ?? refusal;
  },

  "queue.unbind": async (channel, fields) => {
    await channel.published();
    const spec = toBinding(channel, fields);
    if (isRefusal(spec)) return spec;
    const refusal = await channel.verbs.unbind(channel.session, spec);
    if (refusal !== undefined) return refusal;
    channel.connection.quota.unbound(spec.queue);
    channel.reply("queue.unbind-ok", {});
    return undefined;
  },

  "queue.purge": async (channel, fields) => {
    const queue = channel.queueName(fields.queue);
    if (isRefusal(queue)) return queue;
    await channel.published();
    const purged = await channel.verbs.purgeQueue(channel.session, queue);
    if (isRefusal(purged)) return purged;
    if (!fields.nowait) channel.reply("queue.purge-ok", { messageCount: purged.messages });
    return undefined;
  },

  "queue.delete": async (channel, fields) => {
    const queue = channel.queueName(fields.queue);
    if (isRefusal(queue)) return queue;
    await channel.published();
    const { ifUnused, ifEmpty } = fields;
    const deleted = await channel.verbs.deleteQueue(channel.session, queue, { ifUnused, ifEmpty });
    if (isRefusal(deleted)) return deleted;
    channel.connection.quota.deleted(queue);
    if (!fields.nowait) channel.reply("queue.delete-ok", { messageCount: deleted.messages });
    return undefined;
  },
};

async function declare(
  channel: Channel,
  fields: FieldsOf<"queue.declare">,
): ReturnType<Channel["verbs"]["declareQueue"]> {
  const { queue: name, durable, exclusive, autoDelete } = fields;
  const { quota } = channel.connection;
  const refusal = quota.forQueue(name);
  if (refusal !== undefined) return refusal;
  const args = queueArguments(name, fields.arguments);
  if (isRefusal(args)) return args;
  const { type, canonical } = args;
  const spec = { name, durable, exclusive, autoDelete, type, arguments: canonical };
  const declared = await channel.verbs.declareQueue(channel.session, spec);
  if (!isRefusal(declared)) quota.declared(declared.name);
  return declared;
}

/** An empty queue is the last one declared, and then an empty key is that queue's name (AMQP queue.bind). */
function toBinding(channel: Channel, fields: Omit<FieldsOf<"queue.bind">, "nowait" | "ticket">): BindingSpec | Refusal {
  const queue = channel.queueName(fields.queue);
  if (isRefusal(queue)) return queue;
  const key = fields.queue === "" && fields.routingKey === "" ? queue : fields.routingKey;
  return { queue, exchange: fields.exchange, key, arguments: canonical(fields.arguments) };
}
