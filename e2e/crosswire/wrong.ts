// How a client provokes each other refusal that closes its channel: what a declaration, a publish or a settlement can
// have wrong. Rows by the names of the broker's table of refusals; run by refusals.test.ts.
import type { RefusalName } from "@amqp/broker";
import { fromPlain } from "@amqp/codec";
import { consume, header, newExchange, newQueue } from "./declaring.ts";
import type { Case, Scene } from "./refused.ts";

/** What is wrong with one command, or with one message. */
export const WRONG: Partial<Record<RefusalName, readonly Case[]>> = {
  "no-queue": (["queue.declare", "queue.purge", "basic.get", "basic.consume"] as const).map((method) => ({
    when: `sends ${method} for none`,
    method,
    says: /no queue '.*' in vhost '\/'/,
    provoke: ({ socket, name }) =>
      socket.send(1, method, { queue: name(), ...(method === "queue.declare" ? { passive: true } : {}) }),
  })),
  "no-exchange": [
    {
      when: "publishes to none",
      method: "basic.publish",
      says: /no exchange '.*' in vhost '\/'/,
      provoke: ({ socket, name }) => socket.publish(1, { exchange: name() }, "x"),
    },
  ],
  "queue-locked": [
    {
      when: "touches another connection's exclusive queue",
      method: "queue.declare",
      says: /exclusive access to locked queue/,
      provoke: async (scene) => {
        const other = await scene.another();
        const queue = await newQueue({ ...scene, socket: other }, { exclusive: true });
        scene.socket.send(1, "queue.declare", { queue, passive: true });
      },
    },
  ],
  "exclusive-use": [
    {
      when: "wants a consumed queue for itself",
      method: "basic.consume",
      says: /in exclusive use/,
      provoke: async (scene) => {
        const queue = await newQueue(scene);
        await consume(scene.socket, queue);
        scene.socket.send(1, "basic.consume", { queue, consumerTag: "u", exclusive: true });
      },
    },
  ],
  "default-exchange": [
    {
      when: "binds to it",
      method: "queue.bind",
      says: /not permitted on the default exchange/,
      provoke: async (scene) => scene.socket.send(1, "queue.bind", { queue: await newQueue(scene), routingKey: "k" }),
    },
  ],
  "internal-exchange": [
    {
      when: "publishes to one",
      method: "basic.publish",
      says: /internal exchange/,
      provoke: async (scene) => {
        scene.socket.publish(1, { exchange: await newExchange(scene, "fanout", { internal: true }) }, "x");
      },
    },
  ],
  "inequivalent-queue": [
    {
      when: "declares it otherwise",
      method: "queue.declare",
      says: /inequivalent arg 'durable'.*received 'true' but current is 'false'/,
      provoke: async (scene) => {
        scene.socket.send(1, "queue.declare", { queue: await newQueue(scene), durable: true, autoDelete: true });
      },
    },
  ],
  "inequivalent-exchange": [
    {
      when: "declares it otherwise",
      method: "exchange.declare",
      says: /inequivalent arg 'type'.*received 'fanout' but current is 'topic'/,
      provoke: async (scene) => {
        scene.socket.send(1, "exchange.declare", { exchange: await newExchange(scene, "topic"), type: "fanout" });
      },
    },
  ],
  "quorum-property": [
    {
      when: "declares a transient quorum queue",
      method: "queue.declare",
      says: /invalid property 'non-durable'/,
      provoke: ({ socket, name }) =>
        socket.send(1, "queue.declare", { queue: name(), arguments: fromPlain({ "x-queue-type": "quorum" }) }),
    },
  ],
  "queue-in-use": [
    {
      when: "deletes a consumed queue if unused",
      method: "queue.delete",
      says: /in use/,
      provoke: async (scene) => {
        const queue = await newQueue(scene);
        await consume(scene.socket, queue);
        scene.socket.send(1, "queue.delete", { queue, ifUnused: true });
      },
    },
  ],
  "queue-not-empty": [
    {
      when: "deletes a queue that holds a message if empty",
      method: "queue.delete",
      says: /not empty/,
      provoke: async (scene) => {
        const queue = await newQueue(scene, { exclusive: true });
        scene.socket.publish(1, { routingKey: queue }, "x");
        scene.socket.send(1, "queue.delete", { queue, ifEmpty: true });
      },
    },
  ],
  "exchange-in-use": [
    {
      when: "deletes a bound exchange if unused",
      method: "exchange.delete",
      says: /in use/,
      provoke: async (scene) => {
        const [queue, exchange] = [await newQueue(scene, { exclusive: true }), await newExchange(scene, "fanout")];
        scene.socket.send(1, "queue.bind", { queue, exchange });
        await scene.socket.expect("queue.bind-ok");
        scene.socket.send(1, "exchange.delete", { exchange, ifUnused: true });
      },
    },
  ],
  "no-subject": [
    {
      when: "declares a queue with a dot",
      method: "queue.declare",
      says: /A-Z a-z 0-9 _ -/,
      provoke: ({ socket }) => socket.send(1, "queue.declare", { queue: "a.b" }),
    },
    {
      when: "declares an exchange of 129 characters",
      method: "exchange.declare",
      says: /128/,
      provoke: ({ socket }) => socket.send(1, "exchange.declare", { exchange: "x".repeat(129), type: "topic" }),
    },
    {
      when: "declares an exchange of no known kind",
      method: "exchange.declare",
      says: /direct.*fanout.*topic/,
      provoke: ({ socket, name }) => socket.send(1, "exchange.declare", { exchange: name(), type: "nonsense" }),
    },
    ...["a.*", "a.#", "a..b", ".a", "a b", "a>"].map((routingKey) => ({
      when: `publishes with the key ${routingKey}`,
      method: "basic.publish" as const,
      says: /routing key/,
      provoke: ({ socket }: Scene) => socket.publish(1, { routingKey }, "x"),
    })),
  ],
  "no-previous-queue": [
    {
      when: "leaves the name out before any declare",
      method: "basic.get",
      says: /no previously declared queue/,
      provoke: ({ socket }) => socket.send(1, "basic.get", {}),
    },
  ],
  "invalid-queue-type": [
    {
      when: "declares a stream",
      method: "queue.declare",
      says: /invalid arg 'x-queue-type'.*stream/,
      provoke: ({ socket, name }) =>
        socket.send(1, "queue.declare", { queue: name(), arguments: fromPlain({ "x-queue-type": "stream" }) }),
    },
  ],
  "unacceptable-type": [
    {
      when: "gives a number for a name",
      method: "queue.declare",
      says: /invalid arg 'x-queue-type'.*unacceptable_type/,
      provoke: ({ socket, name }) =>
        socket.send(1, "queue.declare", { queue: name(), arguments: fromPlain({ "x-queue-type": 7 }) }),
    },
  ],
  "unknown-tag": (["basic.ack", "basic.nack", "basic.reject"] as const).map((method) => ({
    when: `sends ${method} for what it does not hold`,
    method,
    says: /unknown delivery tag 7$/,
    provoke: ({ socket }) => socket.send(1, method, { deliveryTag: 7n }),
  })),
  "foreign-user": [
    {
      when: "signs with another's name",
      method: "basic.publish",
      says: /user_id property set to 'other' but authenticated user was 'guest'/,
      provoke: ({ socket, name }) => socket.publish(1, { routingKey: name() }, "x", { userId: "other" }),
    },
  ],
  "invalid-expiration": ["abc", "", "-1", "1.5", " 1"].map((expiration) => ({
    when: `publishes with the expiration '${expiration}'`,
    method: "basic.publish" as const,
    says: /invalid expiration/,
    provoke: ({ socket, name }: Scene) => socket.publish(1, { routingKey: name() }, "x", { expiration }),
  })),
  "message-too-large": [
    {
      when: "announces more than the bus takes, before any of it",
      method: "basic.publish",
      says: /larger than the bus takes/,
      provoke: ({ socket }) => header(socket, 1, 64 * 1024 * 1024),
    },
  ],
  "properties-too-large": [
    {
      when: "sends properties of 60,000 octets",
      method: "basic.publish",
      says: /move them into the body/,
      provoke: ({ socket, name }) =>
        socket.publish(1, { routingKey: name() }, "x", { headers: fromPlain({ long: "x".repeat(60_000) }) }),
    },
  ],
  "too-many-in-namespace": [
    {
      when: "declares a queue more than there may be, however many connections made them",
      method: "queue.declare",
      says: /this namespace has 5 queues, the limit; delete some, or raise the limit/,
      env: { AMQP_MAX_NAMESPACE_QUEUES: "5" },
      provoke: async (scene) => {
        const other = await scene.another();
        for (let queue = 0; queue < 5; queue++) {
          other.send(1, "queue.declare", { queue: scene.name(), exclusive: true });
          await other.expect("queue.declare-ok");
        }
        scene.socket.send(1, "queue.declare", { queue: scene.name(), exclusive: true });
      },
    },
  ],
  "too-many": [
    {
      when: "starts a consumer more than it may have",
      method: "basic.consume",
      says: /has 50 consumers, the limit; use another connection/,
      env: { AMQP_MAX_CONSUMERS: "50" },
      provoke: async (scene) => {
        const queue = await newQueue(scene, { exclusive: true });
        for (let tag = 0; tag <= 50; tag++) {
          scene.socket.send(1, "basic.consume", { queue, consumerTag: `${tag}`, nowait: true });
        }
      },
    },
    {
      when: "declares a queue more than it may have",
      method: "queue.declare",
      says: /has 5 queues, the limit; use another connection/,
      env: { AMQP_MAX_QUEUES: "5" },
      provoke: async (scene) => {
        for (let queue = 0; queue < 5; queue++) await newQueue(scene, { exclusive: true });
        scene.socket.send(1, "queue.declare", { queue: scene.name(), exclusive: true });
      },
    },
    {
      when: "binds more often than it may",
      method: "queue.bind",
      says: /has 5 bindings, the limit; use another connection/,
      env: { AMQP_MAX_BINDINGS: "5" },
      provoke: async (scene) => {
        const [queue, exchange] = [await newQueue(scene, { exclusive: true }), await newExchange(scene, "direct")];
        for (let key = 0; key < 5; key++) {
          scene.socket.send(1, "queue.bind", { queue, exchange, routingKey: `${key}` });
          await scene.socket.expect("queue.bind-ok");
        }
        scene.socket.send(1, "queue.bind", { queue, exchange, routingKey: "one more" });
      },
    },
  ],
};
