// How a client provokes what is not implemented: HIP §4 row by row, and what else is answered with 540 on the channel.
// Rows by the names of the broker's table of refusals; run by refusals.test.ts.
import type { RefusalName } from "@amqp/broker";
import { fromPlain } from "@amqp/codec";
import { newExchange, newQueue } from "./declaring.ts";
import type { Case, Scene } from "./refused.ts";

/** HIP §4, row by row, and what else is 540: each answer names what to do instead. */
export const NOT_IMPLEMENTED: Partial<Record<RefusalName, readonly Case[]>> = {
  "no-filter": [
    {
      when: "declares a headers exchange",
      method: "exchange.declare",
      says: /headers.*(topic|direct|fanout)/,
      provoke: ({ socket, name }) => socket.send(1, "exchange.declare", { exchange: name(), type: "headers" }),
    },
    ...["#.a", "a.#.b", "a.b*", "a.>", "*#"].map((routingKey) => ({
      when: `binds a topic with ${routingKey}`,
      method: "queue.bind" as const,
      says: /NATS|wildcard/,
      provoke: async (scene: Scene) => {
        const [queue, exchange] = [await newQueue(scene), await newExchange(scene, "topic")];
        scene.socket.send(1, "queue.bind", { queue, exchange, routingKey });
      },
    })),
    {
      when: "binds a direct exchange with a wildcard",
      method: "queue.bind",
      says: /direct matches literally; use a topic exchange/,
      provoke: async (scene) => {
        const [queue, exchange] = [await newQueue(scene), await newExchange(scene, "direct")];
        scene.socket.send(1, "queue.bind", { queue, exchange, routingKey: "a.*" });
      },
    },
  ],
  transactions: (["tx.select", "tx.commit", "tx.rollback"] as const).map((method) => ({
    when: `sends ${method}`,
    method,
    says: /confirm\.select/,
    provoke: ({ socket }) => socket.send(1, method, {}),
  })),
  "prefetch-size": [
    {
      when: "bounds by octets",
      method: "basic.qos",
      says: /message count/,
      provoke: ({ socket }) => socket.send(1, "basic.qos", { prefetchSize: 1, prefetchCount: 1 }),
    },
  ],
  immediate: [
    {
      when: "publishes immediate",
      method: "basic.publish",
      says: /publish with mandatory/,
      provoke: ({ socket, name }) => socket.publish(1, { routingKey: name(), immediate: true }, "x"),
    },
  ],
  "flow-off": [
    {
      when: "stops the flow",
      method: "channel.flow",
      says: /basic\.cancel.*basic\.qos/,
      provoke: ({ socket }) => socket.send(1, "channel.flow", { active: false }),
    },
  ],
  "exchange-binding": (["exchange.bind", "exchange.unbind"] as const).map((method) => ({
    when: `sends ${method}`,
    method,
    says: /bind the queue to each exchange/,
    provoke: ({ socket, name }) => socket.send(1, method, { destination: name(), source: name(), routingKey: "k" }),
  })),
  "recover-async": [
    {
      when: "recovers without an answer",
      method: "basic.recover-async",
      says: /use basic\.recover/,
      provoke: ({ socket }) => socket.send(1, "basic.recover-async", { requeue: true }),
    },
  ],
  "direct-reply-to": [
    {
      when: "consumes amq.rabbitmq.reply-to",
      method: "basic.consume",
      says: /exclusive/,
      provoke: ({ socket }) => socket.send(1, "basic.consume", { queue: "amq.rabbitmq.reply-to", noAck: true }),
    },
    {
      when: "names amq.rabbitmq.reply-to in reply-to",
      method: "basic.publish",
      says: /exclusive/,
      provoke: ({ socket, name }) =>
        socket.publish(1, { routingKey: name() }, "x", { replyTo: "amq.rabbitmq.reply-to" }),
    },
  ],
  "sender-selected": ["CC", "BCC"].map((key) => ({
    when: `publishes with ${key}`,
    method: "basic.publish" as const,
    says: new RegExp(`${key}.*publish once a routing key`),
    provoke: ({ socket, name }: Scene) =>
      socket.publish(1, { routingKey: name() }, "x", { headers: fromPlain({ [key]: ["k"] }) }),
  })),
  argument: [
    ...["x-message-ttl", "x-expires", "x-max-length", "x-dead-letter-exchange", "x-max-priority", "x-unheard-of"].map(
      (argument) => ({
        when: `declares a queue with ${argument}`,
        method: "queue.declare" as const,
        says: new RegExp(`'${argument}'.*leave it out`),
        provoke: ({ socket, name }: Scene) =>
          socket.send(1, "queue.declare", { queue: name(), arguments: fromPlain({ [argument]: 1_000 }) }),
      }),
    ),
    {
      when: "declares an exchange with an alternate",
      method: "exchange.declare",
      says: /'alternate-exchange'.*leave it out/,
      provoke: ({ socket, name }) => {
        const alternate = fromPlain({ "alternate-exchange": "other" });
        socket.send(1, "exchange.declare", { exchange: name(), type: "direct", arguments: alternate });
      },
    },
    {
      when: "consumes with a priority",
      method: "basic.consume",
      says: /'x-priority'.*leave it out/,
      provoke: async (scene) => {
        const queue = await newQueue(scene);
        scene.socket.send(1, "basic.consume", { queue, arguments: fromPlain({ "x-priority": 1 }) });
      },
    },
  ],
};
