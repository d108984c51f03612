// A queue with a backlog on nats-servers alone: publishers with confirms, a client that works it off slowly and does with what
// it gets all that a client may, and what was lost in the end. Used by bus.ts, which kills servers meanwhile.
import { setTimeout as sleep } from "node:timers/promises";
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import type { Random } from "../torture/random.ts";

const SECOND = 1_000_000_000;
const BACKLOG = 600;

/** What a backlog is on. */
export interface BacklogBus {
  readonly connection: NatsConnection;
  readonly random: Random;
  /** Resolves to the sequence, throws where it is not known to be stored. */
  publish(name: string, text: string): Promise<number>;
  /** Makes a durable consumer, or changes it. */
  durable(name: string, filters: readonly string[], wait: number): Promise<void>;
  /** Resolves when there is to be load; false: no more. */
  goesOn(): Promise<boolean>;
}

export class Backlog {
  readonly name: string;
  readonly #bus: BacklogBus;
  /** Confirmed, and where it is. */
  readonly #stored: Map<string, number> = new Map();
  readonly #came: Set<string> = new Set();
  readonly #acknowledged: Set<string> = new Set();
  #serial = 0;
  #last = 0;
  #draining = false;

  constructor(name: string, bus: BacklogBus) {
    this.name = name;
    this.#bus = bus;
  }

  get confirmed(): number {
    return this.#stored.size;
  }

  get owed(): number {
    return this.#stored.size - this.#acknowledged.size;
  }

  async publish(): Promise<void> {
    const { random } = this.#bus;
    while (await this.#bus.goesOn()) {
      const text = `${this.name} ${++this.#serial}`;
      const stored = this.#bus.publish(this.name, text).then((sequence) => this.#stored.set(text, sequence));
      await stored.catch(() => sleep(100));
      await sleep(random.integer(0, 130));
    }
  }

  async work(): Promise<void> {
    while (await this.#bus.goesOn()) {
      if (this.owed > BACKLOG * (this.#bus.random.integer(50, 150) / 100)) await this.#pull(50);
      else await sleep(100);
    }
  }

  /** What it lost, of what is still in the stream for it: the messages' sequences, and how many of them never came. */
  async drain(): Promise<{ lost: number[]; never: number }> {
    this.#draining = true;
    // What was delivered into a connection that broke comes again.
    await this.#bus.durable(this.name, [], 3);
    for (this.#last = performance.now(); this.owed > 0 && performance.now() - this.#last < 30_000; )
      await this.#pull(200);
    const lost = [...this.#stored].filter(([text]) => !this.#acknowledged.has(text));
    return { lost: lost.map(([, at]) => at), never: lost.filter(([text]) => !this.#came.has(text)).length };
  }

  #took(message: Msg): void {
    const text = message.string();
    this.#came.add(text);
    this.#last = performance.now();
    const ack = (): void => {
      message.respond("+ACK");
      this.#acknowledged.add(text);
    };
    const { random } = this.#bus;
    const draw = this.#draining ? 100 : random.integer(0, 99);
    if (draw < 10) message.respond('-NAK {"delay":1}');
    else if (draw < 30) setTimeout(ack, random.integer(0, 8_000));
    else if (draw >= 32) ack();
  }

  async #pull(batch: number): Promise<void> {
    const { connection } = this.#bus;
    const inbox = `_INBOX.${this.name}.${++this.#serial}`;
    await new Promise<void>((resolve) => {
      let left = batch;
      const callback = (_: Error | null, message: Msg): void => {
        const isMessage = (message.headers?.code ?? 0) === 0;
        if (isMessage) this.#took(message);
        if (!isMessage || --left === 0) resolve();
      };
      const subscription = connection.subscribe(inbox, { callback });
      const body = JSON.stringify({ batch, expires: SECOND });
      connection.publish(`$JS.API.CONSUMER.MSG.NEXT.T.${this.name}`, body, { reply: inbox });
      setTimeout(resolve, 1_500);
      setTimeout(() => subscription.unsubscribe(), 4_000);
    });
  }
}
