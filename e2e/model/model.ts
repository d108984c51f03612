// AMQP as it is meant, in a page: exchanges, bindings and queues of numbered messages, held in memory.
// The reference that runner.ts compares a broker with, step by step. Written without the translator and without any
// thought of a log, so that it can disagree with both. AMQP 3.1.2, 3.1.3, 4.7.

/** The exchange kinds that can be bound (HIP §2). */
export type Kind = "direct" | "fanout" | "topic";

/** Where a requeued message goes: back to its old place (RabbitMQ), or behind those requeued before it (the gateway). */
export type Requeueing = "in place" | "in order of settlement";

/** A message; its number rises with each publish. */
export interface Message {
  readonly id: number;
  readonly exchange: string;
  readonly key: string;
}

/** A message that was handed out and is not settled. Its queue may be gone meanwhile. */
export interface Held {
  readonly queue: Queue;
  readonly message: Message;
  readonly redelivered: boolean;
}

/** One life of a queue. */
interface Queue {
  readonly name: string;
  /** Handed out once and given back; always older than every fresh one, so they come first. */
  readonly requeued: Message[];
  readonly fresh: Message[];
}

interface Binding {
  readonly queue: string;
  readonly exchange: string;
  readonly key: string;
}

export class Model {
  readonly #requeueing: Requeueing;
  readonly #queues: Map<string, Queue> = new Map();
  readonly #exchanges: Map<string, Kind> = new Map();
  #bindings: Binding[] = [];
  #published = 0;

  constructor(requeueing: Requeueing) {
    this.#requeueing = requeueing;
  }

  get queues(): readonly string[] {
    return [...this.#queues.keys()];
  }

  hasQueue(name: string): boolean {
    return this.#queues.has(name);
  }

  kindOf(exchange: string): Kind | undefined {
    return this.#exchanges.get(exchange);
  }

  declareQueue(name: string): void {
    if (!this.#queues.has(name)) this.#queues.set(name, { name, requeued: [], fresh: [] });
  }

  /** @returns how many ready messages went with it. */
  deleteQueue(name: string): number {
    const count = this.ready(name);
    this.#queues.delete(name);
    this.#bindings = this.#bindings.filter((binding) => binding.queue !== name);
    return count;
  }

  declareExchange(name: string, kind: Kind): void {
    if (!this.#exchanges.has(name)) this.#exchanges.set(name, kind);
  }

  /** What its bindings had queued stays queued. */
  deleteExchange(name: string): void {
    this.#exchanges.delete(name);
    this.#bindings = this.#bindings.filter((binding) => binding.exchange !== name);
  }

  bind(queue: string, exchange: string, key: string): void {
    this.unbind(queue, exchange, key);
    this.#bindings.push({ queue, exchange, key });
  }

  unbind(queue: string, exchange: string, key: string): void {
    this.#bindings = this.#bindings.filter(
      (binding) => binding.queue !== queue || binding.exchange !== exchange || binding.key !== key,
    );
  }

  /** One copy for each queue that takes it, however many of its bindings match; the default exchange is by queue name. */
  publish(exchange: string, key: string): Message {
    const message = { id: this.#published++, exchange, key };
    for (const queue of this.#queues.values()) {
      if (this.#takes(queue.name, exchange, key)) queue.fresh.push(message);
    }
    return message;
  }

  #takes(queue: string, exchange: string, key: string): boolean {
    if (exchange === "") return queue === key;
    const kind = this.#exchanges.get(exchange);
    return this.#bindings.some(
      (binding) => binding.queue === queue && binding.exchange === exchange && keyMatches(kind, binding.key, key),
    );
  }

  /** Messages that are ready: neither handed out nor gone. */
  ready(queue: string): number {
    const { requeued = [], fresh = [] } = this.#queues.get(queue) ?? {};
    return requeued.length + fresh.length;
  }

  /** Hands out the next ready message. */
  take(name: string): Held | undefined {
    const queue = this.#queues.get(name);
    const again = queue?.requeued.shift();
    const message = again ?? queue?.fresh.shift();
    return queue === undefined || message === undefined
      ? undefined
      : { queue, message, redelivered: again !== undefined };
  }

  /** Gives back what was handed out, in one step; what belongs to a queue that is gone is gone with it. */
  requeue(held: readonly Held[]): void {
    const ascending = [...held].sort((a, b) => a.message.id - b.message.id);
    for (const { queue, message } of ascending) queue.requeued.push(message);
    if (this.#requeueing === "in place") {
      for (const { queue } of ascending) queue.requeued.sort((a, b) => a.id - b.id);
    }
  }

  /** @returns how many ready messages it took; those handed out are spared. */
  purge(name: string): number {
    const count = this.ready(name);
    const queue = this.#queues.get(name);
    queue?.requeued.splice(0);
    queue?.fresh.splice(0);
    return count;
  }
}

/** AMQP 3.1.3: direct by equality, fanout always, topic by words: `*` is one, `#` is any number. */
function keyMatches(kind: Kind | undefined, pattern: string, key: string): boolean {
  if (kind === "direct") return pattern === key;
  if (kind === "fanout") return true;
  return wordsMatch(pattern === "" ? [] : pattern.split("."), key === "" ? [] : key.split("."));
}

function wordsMatch([first, ...rest]: readonly string[], words: readonly string[]): boolean {
  if (first === undefined) return words.length === 0;
  if (first === "#") return wordsMatch(rest, words) || (words.length > 0 && wordsMatch(["#", ...rest], words.slice(1)));
  return words.length > 0 && (first === "*" || first === words[0]) && wordsMatch(rest, words.slice(1));
}
