// A broker and the model side by side: does one operation to both and compares all that the broker says of it with what
// the model says. Used by runner.ts, which runs a history. Separate because here is the wire, and only here.
import type { FieldsOf, MethodName } from "@amqp/codec";
import { AmqpSocket } from "../harness/socket.ts";
import { Holdings, type Tagged } from "./holdings.ts";
import { type Held, type Kind, Model, type Requeueing } from "./model.ts";
import { bindingKey, CHANNELS, isPossible, NAMES, type Operation } from "./operations.ts";

/** The channel that declares, binds and publishes, with confirms. */
const MAIN = 3;
/** Where and how to run. */
export interface Place {
  readonly host: string;
  readonly port: number;
  readonly requeueing: Requeueing;
  /** Milliseconds that what another channel did may take to be seen; RabbitMQ promises nothing at once. */
  readonly patience: number;
  /** Milliseconds until an answer is given up. */
  readonly timeout: number;
}

/** One broker, one model, under names of their own. */
export class Pair {
  readonly #place: Place;
  readonly #prefix: string;
  readonly #model: Model;
  readonly #socket: AmqpSocket;
  readonly #held: Holdings = new Holdings();
  #confirms = 0n;

  private constructor(place: Place, prefix: string, socket: AmqpSocket) {
    this.#place = place;
    this.#prefix = prefix;
    this.#model = new Model(place.requeueing);
    this.#socket = socket;
  }

  /** Connects; every name begins with the prefix. */
  static async start(place: Place, prefix: string): Promise<Pair> {
    const socket = await AmqpSocket.open(place);
    for (const channel of [...CHANNELS, MAIN]) await socket.channel(channel);
    socket.send(MAIN, "confirm.select", {});
    await socket.expect("confirm.select-ok");
    return new Pair(place, prefix, socket);
  }

  /** Whether the operation is possible as things stand; else it is skipped. */
  isPossible(operation: Operation): boolean {
    return isPossible(operation, this.#model, (channel) => this.#held.of(channel).length > 0);
  }

  /** Does it to both. Throws where they differ. */
  async do(operation: Operation): Promise<void> {
    switch (operation.do) {
      case "declare queue":
        this.#model.declareQueue(operation.queue);
        await this.#count(operation.queue, false);
        break;
      case "delete queue":
        await this.#deleteQueue(operation.queue);
        break;
      case "purge":
        await this.#purge(operation.queue);
        break;
      case "drain":
        await this.#drain(operation.queue);
        break;
      case "declare exchange":
        await this.#declareExchange(operation.exchange, operation.kind);
        break;
      case "delete exchange":
        await this.#deleteExchange(operation.exchange);
        break;
      case "bind":
      case "unbind":
        await this.#bindOrUnbind(operation);
        break;
      case "publish":
        await this.#publish(operation.exchange, operation.key, operation.times);
        break;
      case "get":
        await this.#get(operation.queue, operation.channel, operation.noAck);
        break;
      case "consume":
        await this.#consume(operation.queue, operation.channel, operation.prefetch);
        break;
      case "ack":
      case "nack":
      case "discard":
        await this.#settle(operation);
        break;
      case "recover":
        this.#socket.send(operation.channel, "basic.recover", { requeue: true });
        await this.#expect("basic.recover-ok");
        await this.#requeued(operation.channel, this.#held.take(operation.channel));
        break;
      case "close channel":
        this.#socket.send(operation.channel, "channel.close", {
          replyCode: 200,
          replyText: "",
          classId: 0,
          methodId: 0,
        });
        await this.#expect("channel.close-ok");
        await this.#socket.channel(operation.channel);
        await this.#requeued(operation.channel, this.#held.take(operation.channel));
        break;
    }
  }

  /** Every queue holds as many as the model says. */
  async audit(): Promise<void> {
    for (const queue of this.#model.queues) await this.#count(queue, true);
  }

  /** Everything held is given back, and every queue is read to its end. */
  async empty(): Promise<void> {
    for (const channel of CHANNELS) await this.do({ do: "close channel", channel });
    for (const queue of this.#model.queues) await this.#drain(queue);
  }

  /** Takes everything away again. */
  async end(): Promise<void> {
    try {
      const janitor = await AmqpSocket.open(this.#place);
      await janitor.channel(1);
      for (const name of NAMES) {
        janitor.send(1, "queue.delete", { queue: this.#named(name), ifUnused: false, ifEmpty: false });
        await janitor.expect("queue.delete-ok");
        janitor.send(1, "exchange.delete", { exchange: this.#named(name), ifUnused: false });
        await janitor.expect("exchange.delete-ok");
      }
      janitor.destroy();
    } finally {
      this.#socket.destroy();
    }
  }

  #expect<N extends MethodName>(name: N): Promise<FieldsOf<N>> {
    return this.#socket.expect(name, this.#place.timeout);
  }

  #named(name: string): string {
    return name === "" ? "" : `${this.#prefix}${name}`;
  }

  async #deleteQueue(queue: string): Promise<void> {
    const expected = this.#model.deleteQueue(queue);
    this.#socket.send(MAIN, "queue.delete", { queue: this.#named(queue), ifUnused: false, ifEmpty: false });
    const { messageCount } = await this.#expect("queue.delete-ok");
    same(`queue.delete-ok of ${queue}`, messageCount, expected);
  }

  async #purge(queue: string): Promise<void> {
    this.#socket.send(MAIN, "queue.purge", { queue: this.#named(queue) });
    const { messageCount } = await this.#expect("queue.purge-ok");
    same(`queue.purge-ok of ${queue}`, messageCount, this.#model.purge(queue));
    await this.#count(queue, true);
  }

  async #drain(queue: string): Promise<void> {
    while (await this.#get(queue, MAIN, true));
  }

  async #declareExchange(exchange: string, kind: Kind): Promise<void> {
    this.#model.declareExchange(exchange, kind);
    this.#socket.send(MAIN, "exchange.declare", { exchange: this.#named(exchange), type: kind, durable: true });
    await this.#expect("exchange.declare-ok");
  }

  async #deleteExchange(exchange: string): Promise<void> {
    this.#model.deleteExchange(exchange);
    this.#socket.send(MAIN, "exchange.delete", { exchange: this.#named(exchange), ifUnused: false });
    await this.#expect("exchange.delete-ok");
    await this.audit();
  }

  async #bindOrUnbind(operation: Extract<Operation, { readonly do: "bind" | "unbind" }>): Promise<void> {
    const { queue, exchange } = operation;
    const routingKey = bindingKey(this.#model.kindOf(exchange), operation.key);
    const fields = { queue: this.#named(queue), exchange: this.#named(exchange), routingKey };
    if (operation.do === "bind") {
      this.#model.bind(queue, exchange, routingKey);
      this.#socket.send(MAIN, "queue.bind", fields);
      await this.#expect("queue.bind-ok");
    } else {
      this.#model.unbind(queue, exchange, routingKey);
      this.#socket.send(MAIN, "queue.unbind", fields);
      await this.#expect("queue.unbind-ok");
    }
    await this.#count(queue, true);
  }

  async #publish(exchange: string, key: string, times: number): Promise<void> {
    const before = new Map(this.#model.queues.map((queue) => [queue, this.#model.ready(queue)]));
    const routingKey = exchange === "" ? this.#named(key) : key;
    for (let time = 0; time < times; time++) {
      const { id } = this.#model.publish(exchange, key);
      this.#socket.publish(MAIN, { exchange: this.#named(exchange), routingKey }, `${id}`);
    }
    for (let time = 0; time < times; time++) {
      const { deliveryTag, multiple } = await this.#expect("basic.ack");
      if (multiple) time += Number(deliveryTag - this.#confirms) - 1;
      this.#confirms = deliveryTag;
    }
    for (const [queue, count] of before) if (this.#model.ready(queue) !== count) await this.#count(queue, true);
  }

  /** @returns whether there was one. */
  async #get(queue: string, channel: number, noAck: boolean): Promise<boolean> {
    const expected = this.#model.take(queue);
    this.#socket.send(channel, "basic.get", { queue: this.#named(queue), noAck });
    if (expected === undefined) {
      await this.#expect("basic.get-empty");
      return false;
    }
    const got = await this.#expect("basic.get-ok");
    await this.#compare(`basic.get of ${queue}`, got, expected);
    same(`get-ok's count of ${queue}`, got.messageCount, this.#model.ready(queue));
    if (!noAck) this.#held.add(channel, { ...expected, tag: got.deliveryTag });
    return true;
  }

  /** A consumer with a prefetch takes what it can, is cancelled and keeps what it got. */
  async #consume(queue: string, channel: number, prefetch: number): Promise<void> {
    const socket = this.#socket;
    socket.send(channel, "basic.qos", { prefetchSize: 0, prefetchCount: prefetch, global: false });
    await this.#expect("basic.qos-ok");
    socket.send(channel, "basic.consume", { queue: this.#named(queue), consumerTag: "t" });
    await this.#expect("basic.consume-ok");
    for (let left = Math.min(prefetch, this.#model.ready(queue)); left > 0; left--) {
      const expected = this.#model.take(queue) as Held;
      const got = await this.#expect("basic.deliver");
      await this.#compare(`basic.deliver of ${queue}`, got, expected);
      this.#held.add(channel, { ...expected, tag: got.deliveryTag });
    }
    socket.send(channel, "basic.cancel", { consumerTag: "t" });
    await this.#expect("basic.cancel-ok");
    await this.#count(queue, true, channel);
  }

  async #compare(
    what: string,
    got: { readonly redelivered: boolean; readonly exchange: string; readonly routingKey: string },
    expected: Held,
  ): Promise<void> {
    const { body } = await this.#socket.expectContent();
    same(`the message of ${what}`, body.toString(), `${expected.message.id}`);
    same(`redelivered of message ${expected.message.id}, ${what}`, got.redelivered, expected.redelivered);
    same(`the exchange of ${what}`, got.exchange, this.#named(expected.message.exchange));
    const { exchange, key } = expected.message;
    same(`the key of ${what}`, got.routingKey, exchange === "" ? this.#named(key) : key);
  }

  async #settle(operation: Extract<Operation, { readonly multiple: boolean }>): Promise<void> {
    const { channel, multiple } = operation;
    const held = this.#held.of(channel);
    const last = held[operation.nth % held.length];
    if (last === undefined) return;
    const settled = this.#held.take(channel, ({ tag }) => (multiple ? tag <= last.tag : tag === last.tag));
    if (operation.do === "ack") {
      this.#socket.send(channel, "basic.ack", { deliveryTag: last.tag, multiple });
      await this.#recount(channel, settled);
    } else {
      const requeue = operation.do === "nack";
      this.#socket.send(channel, "basic.nack", { deliveryTag: last.tag, multiple, requeue });
      await (requeue ? this.#requeued(channel, settled) : this.#recount(channel, settled));
    }
  }

  async #requeued(channel: number, held: readonly Tagged[]): Promise<void> {
    this.#model.requeue(held);
    await this.#recount(channel, held);
  }

  /** On the channel that settled: what it says next is said after it. */
  async #recount(channel: number, held: readonly Tagged[]): Promise<void> {
    for (const queue of new Set(held.map(({ queue: { name } }) => name))) {
      if (this.#model.hasQueue(queue)) await this.#count(queue, true, channel);
    }
  }

  /** The queue holds as many as the model says, and has no consumer. */
  async #count(queue: string, passive: boolean, channel: number = MAIN): Promise<void> {
    const end = Date.now() + this.#place.patience;
    for (;;) {
      this.#socket.send(channel, "queue.declare", { queue: this.#named(queue), durable: true, passive });
      const { messageCount, consumerCount } = await this.#expect("queue.declare-ok");
      if (messageCount === this.#model.ready(queue) && consumerCount === 0) return;
      if (Date.now() < end) continue;
      same(`the count of ${queue}`, messageCount, this.#model.ready(queue));
      same(`the consumers of ${queue}`, consumerCount, 0);
    }
  }
}

function same(what: string, got: unknown, expected: unknown): void {
  if (got !== expected) throw new Error(`${what}: the broker says ${String(got)}, the model ${String(expected)}`);
}
