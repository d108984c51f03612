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
  /** Acknowledged, and since when the broker has known that the bus has processed it. */
  readonly settled: Map<number, number>;
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
/** What was settled so long before a kill does not come again, milliseconds. */
const SURE = 1_000;
/** How long the owner of an exclusive queue may wait for a message to it. */
const REPLY = 20_000;

export class Load {
  readonly seen: Seen = {
    confirmed: new Set(),
    refused: new Set(),
    delivered: new Map(),
    settled: new Map(),
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
  #killed = Number.NEGATIVE_INFINITY;
  #pinged: (() => void) | undefined;
  #own: Channel | undefined;

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
    await load.#reply();
    load.#work.push(load.#publish(), load.#change());
    return load;
  }

  stalls(): Stalls {
    const { publish, consume, topology } = this.#pulses;
    return { publish: publish.take(), consume: consume.take(), topology: topology.take() };
  }

  /** A server is about to be killed. */
  killing(): void {
    this.#killed = performance.now();
  }

  /** Sends a message to the exclusive queue that this load's own consumer has; milliseconds until it came. */
  async ping(): Promise<number> {
    const began = performance.now();
    const came = new Promise<void>((resolve) => {
      this.#pinged = resolve;
    });
    this.#own?.sendToQueue(`own-${this.#name}`, Buffer.from("ping"));
    const late = sleep(REPLY).then(() => true);
    if (await Promise.race([came.then(() => false), late]))
      this.seen.faults.push("the exclusive queue's consumer is not served");
    return Math.round(performance.now() - began);
  }

  /** Publishes and changes nothing more; resolves when all is confirmed. The consumer goes on. */
  async quiet(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#work);
  }

  /** The queue's messages, as a passive declare says. */
  async count(): Promise<number> {
    const channel = await (await this.#connect()).createChannel();
    const { messageCount } = await channel.checkQueue(this.queue);
    await channel.close();
    return messageCount;
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close().catch(() => undefined)));
  }

  async #connect(): Promise<ChannelModel> {
    const connection = await amqplib.connect(this.#url);
    connection.on("error", (error: Error) => this.seen.faults.push(`connection: ${error.message}`));
    connection.on("close", (reason?: Error) => {
      if (!this.#stopping) this.seen.faults.push(`a connection was closed: ${reason?.message}`);
    });
    this.#connections.push(connection);
    return connection;
  }

  async #publish(): Promise<void> {
    const channel: ConfirmChannel = await (await this.#connect()).createConfirmChannel();
    this.#watch(channel, "publisher");
    let open = 0;
    let isOpen = true;
    channel.on("close", () => {
      isOpen = false;
    });
    while (!this.#stopping) {
      if (open < AT_ONCE) {
        const id = this.#published++;
        open++;
        if (!isOpen) return;
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
      if ((this.seen.settled.get(id) ?? Number.POSITIVE_INFINITY) < this.#killed - SURE)
        this.seen.faults.push(`${id} came again though it was settled long before`);
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
          const now = performance.now();
          for (const each of proven) this.seen.settled.set(each, now);
        })
        .catch((error: Error) => this.seen.faults.push(`passive declare: ${error.message}`))
        .finally(() => {
          proving = false;
        });
    });
  }

  /** Owns an exclusive queue and consumes it, as a client that waits for replies. */
  async #reply(): Promise<void> {
    const channel = await (await this.#connect()).createChannel();
    this.#watch(channel, "owner");
    this.#own = channel;
    await channel.assertQueue(`own-${this.#name}`, { exclusive: true });
    await channel.consume(
      `own-${this.#name}`,
      (message) => {
        if (message === null) this.seen.faults.push("the consumer of the exclusive queue was cancelled");
        else this.#pinged?.();
      },
      { noAck: true, exclusive: true },
    );
  }

  /** Declares, binds, unbinds and deletes a queue over and over, and looks whether the intervals are kept. */
  async #change(): Promise<void> {
    let connection = await this.#connect();
    const exchange = `y-${this.#name}`;
    let channel = await connection.createConfirmChannel();
    this.#watch(channel, "changer");
    await channel.assertExchange(exchange, "direct", { durable: true });
    for (let round = 0; !this.#stopping; round++) {
      try {
        await this.#changeOnce(channel, exchange, round);
      } catch (error) {
        this.seen.faults.push(`round ${round}: ${error instanceof Error ? error.message : error}`);
        connection = await this.#connect();
        channel = await connection.createConfirmChannel();
        this.#watch(channel, "changer");
      }
    }
  }

  async #changeOnce(channel: ConfirmChannel, exchange: string, round: number): Promise<void> {
    const queue = `change-${this.#name}-${round % 3}`;
    const key = String(round);
    const step = async <T>(work: Promise<T>): Promise<T> => {
      const result = await work;
      this.#pulses.topology.beat();
      return result;
    };
    const put = async (text: string): Promise<void> => {
      for (let again = true; again; ) {
        again = await new Promise<boolean>((resolve) =>
          channel.publish(exchange, key, Buffer.from(text), {}, (error: unknown) => resolve(error !== null)),
        );
      }
    };
    await step(channel.assertQueue(queue, { exclusive: true }));
    await put("before");
    await step(channel.bindQueue(queue, exchange, key));
    await put("within");
    const { messageCount } = await step(channel.checkQueue(queue));
    if (messageCount < 1) this.seen.faults.push(`round ${round}: counted nothing`);
    await step(channel.unbindQueue(queue, exchange, key));
    await put("after");
    let within = 0;
    for (let got = await step(channel.get(queue, { noAck: true })); got !== false; ) {
      if (got.content.toString() === "within") within++;
      else this.seen.faults.push(`round ${round}: got ${got.content}`);
      got = await step(channel.get(queue, { noAck: true }));
    }
    if (within < 1) this.seen.faults.push(`round ${round}: what was published within the interval did not come`);
    await step(channel.deleteQueue(queue));
  }

  #watch(channel: Channel, who: string): void {
    channel.on("error", (error: Error) => this.seen.faults.push(`${who}: ${error.message}`));
  }
}
