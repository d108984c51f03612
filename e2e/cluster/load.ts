// Clients that go on while servers of the cluster die: a confirming publisher, a consumer that acknowledges and hands
// back, a client that declares, binds, unbinds and deletes, and the owner of an exclusive queue with its consumer.
// Each writes down what it saw and how long it stood still. Separate from the test, which kills and judges.
import { setTimeout as sleep } from "node:timers/promises";
import amqplib, { type Channel, type ChannelModel, type ConfirmChannel } from "amqplib";

/** What a load has seen; times are milliseconds. */
export interface Seen {
  readonly confirmed: Set<number>;
  readonly refused: Set<number>;
  /** Id to how often it came. */
  readonly delivered: Map<number, number>;
  /** Acknowledged, and the bus said later that it has processed that. */
  readonly settled: Set<number>;
  /** What must not happen. */
  readonly faults: string[];
}

/** The longest pauses since the last question. */
export interface Stalls {
  readonly publish: number;
  readonly consume: number;
  readonly topology: number;
}

/** Remembers the longest time between two signs of life. */
class Pulse {
  #last = performance.now();
  #longest = 0;

  beat(): void {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }

  /** The longest pause, the present one included; begins anew. */
  take(): number {
    const longest = Math.max(this.#longest, performance.now() - this.#last);
    this.#longest = 0;
    this.#last = performance.now();
    return Math.round(longest);
  }
}

const PUBLISH_PAUSE = 4;
const AT_ONCE = 200;

export class Load {
  readonly seen: Seen = {
    confirmed: new Set(),
    refused: new Set(),
    delivered: new Map(),
    settled: new Set(),
    faults: [],
  };
  readonly queue: string;
  readonly #url: string;
  readonly #name: string;
  readonly #pulses = { publish: new Pulse(), consume: new Pulse(), topology: new Pulse() };
  readonly #connections: ChannelModel[] = [];
  readonly #work: Promise<void>[] = [];
  #published = 0;
  #stopping = false;

  private constructor(url: string, name: string) {
    this.#url = url;
    this.#name = name;
    this.queue = `load-${name}`;
  }

  static async start(url: string, name: string): Promise<Load> {
    const load = new Load(url, name);
    const setUp = await load.#connect();
    const channel = await setUp.createChannel();
    await channel.assertExchange(`x-${name}`, "fanout", { durable: true });
    await channel.assertQueue(load.queue, { durable: true });
    await channel.bindQueue(load.queue, `x-${name}`, "");
    await channel.close();
    await load.#consume();
    load.#work.push(load.#publish(), load.#change());
    return load;
  }

  stalls(): Stalls {
    const { publish, consume, topology } = this.#pulses;
    return { publish: publish.take(), consume: consume.take(), topology: topology.take() };
  }

  /** Publishes and changes nothing more; resolves when all is confirmed. The consumer goes on. */
  async quiet(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#work);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close().catch(() => undefined)));
  }

  async #connect(): Promise<ChannelModel> {
    const connection = await amqplib.connect(this.#url);
    connection.on("error", (error: Error) => this.seen.faults.push(`connection: ${error.message}`));
    connection.on("close", () => {
      if (!this.#stopping) this.seen.faults.push("a connection was closed");
    });
    this.#connections.push(connection);
    return connection;
  }

  async #publish(): Promise<void> {
    const channel: ConfirmChannel = await (await this.#connect()).createConfirmChannel();
    this.#watch(channel, "publisher");
    let open = 0;
    while (!this.#stopping) {
      if (open < AT_ONCE) {
        const id = this.#published++;
        open++;
        channel.publish(`x-${this.#name}`, "", Buffer.from(String(id)), { persistent: true }, (error: unknown) => {
          open--;
          this.#pulses.publish.beat();
          (error ? this.seen.refused : this.seen.confirmed).add(id);
        });
      }
      await sleep(PUBLISH_PAUSE);
    }
    await channel.waitForConfirms().catch(() => undefined);
  }

  async #consume(): Promise<void> {
    const channel = await (await this.#connect()).createChannel();
    this.#watch(channel, "consumer");
    await channel.prefetch(50);
    let unproven: number[] = [];
    let proving = false;
    await channel.consume(this.queue, (message) => {
      if (message === null) {
        this.seen.faults.push("the consumer was cancelled");
        return;
      }
      this.#pulses.consume.beat();
      const id = Number(message.content.toString());
      const times = (this.seen.delivered.get(id) ?? 0) + 1;
      this.seen.delivered.set(id, times);
      if (times > 1 && !message.fields.redelivered) this.seen.faults.push(`${id} came again and is not flagged`);
      if (this.seen.settled.has(id)) this.seen.faults.push(`${id} came again though it was settled`);
      if (id % 10 === 0 && times === 1) {
        channel.nack(message);
        return;
      }
      channel.ack(message);
      unproven.push(id);
      if (proving || unproven.length < 20) return;
      proving = true;
      const proven = unproven;
      unproven = [];
      // A count waits until the bus has processed what this channel settled.
      void channel
        .checkQueue(this.queue)
        .then(() => {
          for (const each of proven) this.seen.settled.add(each);
        })
        .catch((error: Error) => this.seen.faults.push(`passive declare: ${error.message}`))
        .finally(() => {
          proving = false;
        });
    });
  }

  /** Declares, binds, unbinds and deletes a queue over and over, and looks whether the intervals are kept. */
  async #change(): Promise<void> {
    const connection = await this.#connect();
    const channel = await connection.createConfirmChannel();
    this.#watch(channel, "changer");
    const exchange = `y-${this.#name}`;
    await channel.assertExchange(exchange, "direct", { durable: true });
    await channel.assertQueue(`sink-${this.#name}`, { exclusive: true });
    const put = async (key: string, text: string): Promise<void> =>
      new Promise((resolve, reject) => {
        channel.publish(exchange, key, Buffer.from(text), {}, (error: unknown) =>
          error ? reject(error instanceof Error ? error : new Error(String(error))) : resolve(),
        );
      });
    for (let round = 0; !this.#stopping; round++) {
      const queue = `change-${this.#name}-${round % 3}`;
      const key = String(round);
      const step = async <T>(work: Promise<T>): Promise<T> => {
        const result = await work;
        this.#pulses.topology.beat();
        return result;
      };
      try {
        await step(channel.assertQueue(queue, { exclusive: true }));
        await put(key, "before");
        await step(channel.bindQueue(queue, exchange, key));
        await put(key, "within");
        const { messageCount } = await step(channel.checkQueue(queue));
        if (messageCount !== 1) this.seen.faults.push(`round ${round}: counted ${messageCount} instead of 1`);
        await step(channel.unbindQueue(queue, exchange, key));
        await put(key, "after");
        const first = await step(channel.get(queue, { noAck: true }));
        if (first === false || first.content.toString() !== "within")
          this.seen.faults.push(`round ${round}: got ${first === false ? "nothing" : first.content} instead of within`);
        const second = await step(channel.get(queue, { noAck: true }));
        if (second !== false) this.seen.faults.push(`round ${round}: also got ${second.content}`);
        await step(channel.deleteQueue(queue));
      } catch (error) {
        this.seen.faults.push(`round ${round}: ${error instanceof Error ? error.message : error}`);
        return;
      }
    }
  }

  #watch(channel: Channel, who: string): void {
    channel.on("error", (error: Error) => this.seen.faults.push(`${who}: ${error.message}`));
  }
}
