/**
 * Queues: declare, check, delete, purge, and who may consume.
 *
 * Responsibilities: equivalence (406), exclusiveness (405 before 406), names, counts, if-unused and if-empty, exclusive
 * consumers, auto-delete with the last consumer. Used by: broker. What happens on the bus is lifecycle's.
 */
import type { Queue } from "@amqp/topology";
import { checkName } from "@amqp/translator";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import { type Core, isForeign, queueLane, readyQueue, refuseFault, untilWritten, usableQueue } from "./context.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { generatedName } from "./names.ts";
import type { QueueCounts, QueueSpec, Session, SubscribeOptions, Subscriber, Subscription } from "./verbs.ts";

export class Queues {
  readonly #core: Core;
  readonly #lifecycle: Lifecycle;
  readonly #exchanges: Exchanges;
  /** Told of a queue whose deletion did not come to its end. */
  readonly #unfinished: (queue: string) => void;
  readonly #exclusive: Map<string, Set<string>> = new Map<string, Set<string>>();

  constructor(core: Core, lifecycle: Lifecycle, exchanges: Exchanges, unfinished: (queue: string) => void) {
    this.#core = core;
    this.#lifecycle = lifecycle;
    this.#exchanges = exchanges;
    this.#unfinished = unfinished;
  }

  async declare(session: Session, spec: QueueSpec): Promise<Refusal | QueueCounts> {
    const name = spec.name === "" ? generatedName() : spec.name;
    const fault = checkName("queue", name);
    if (fault !== undefined) return refuseFault(fault);
    const unfit = quorumProperty(spec);
    if (unfit !== undefined) return refuse("quorum-property", { queue: name, argument: unfit });
    const { topology, lanes, fleet } = this.#core;
    const owner = spec.exclusive ? { replica: fleet.replica, connection: session.id } : null;
    const declared = await lanes.run(queueLane(name), () =>
      untilWritten(this.#core, async () => {
        const present = topology.queue(name);
        if (present?.state === "ready") return this.#difference(session, spec, present) ?? present;
        // `deleting` or `making`: nothing but this lane works on it, so it was left by a crash or a silent bus.
        if (present !== undefined) await this.#finish(present);
        const made = await this.#lifecycle.make(name, spec, owner);
        if (made !== "conflict" && owner !== null) this.#own(session, name);
        return made;
      }),
    );
    return isRefusal(declared) ? declared : this.#counts(declared);
  }

  async check(session: Session, name: string): Promise<Refusal | QueueCounts> {
    const queue = await usableQueue(this.#core, session, name);
    return isRefusal(queue) ? queue : this.#counts(queue);
  }

  async delete(
    session: Session,
    name: string,
    options: { readonly ifUnused: boolean; readonly ifEmpty: boolean },
  ): Promise<Refusal | { readonly messages: number }> {
    return this.#inLane(name, async (answer) => {
      const queue = await readyQueue(this.#core, name);
      if (queue === undefined) return answer({ messages: 0 });
      if (isForeign(this.#core, session, queue)) return answer(refuse("queue-locked", { queue: name }));
      if (options.ifUnused && this.#core.fleet.consumers(name) > 0)
        return answer(refuse("queue-in-use", { queue: name }));
      const messages = await this.#core.cursors.of(queue).ready();
      if (options.ifEmpty && messages > 0) return answer(refuse("queue-not-empty", { queue: name }));
      await this.#remove(queue, () => answer({ messages }));
    });
  }

  async purge(session: Session, name: string): Promise<Refusal | { readonly messages: number }> {
    const queue = await usableQueue(this.#core, session, name);
    return isRefusal(queue) ? queue : { messages: await this.#core.cursors.of(queue).purge() };
  }

  async subscribe(
    session: Session,
    name: string,
    subscriber: Subscriber,
    options: SubscribeOptions,
  ): Promise<Refusal | Subscription> {
    const { lanes, fleet, cursors } = this.#core;
    return lanes.run(queueLane(name), async () => {
      const queue = await usableQueue(this.#core, session, name);
      if (isRefusal(queue)) return queue;
      if (fleet.exclusivelyConsumed(name) || (options.exclusive && fleet.consumers(name) > 0))
        return refuse("exclusive-use", { queue: name });
      const subscription = cursors.of(queue).subscribe(subscriber, options);
      return {
        cancel: async () => {
          subscription.cancel();
          if (queue.autoDelete) await this.#lastConsumerWent(queue);
        },
      };
    });
  }

  /** Deletes every exclusive queue of that session. */
  async sessionClosed(session: Session): Promise<void> {
    const names = [...(this.#exclusive.get(session.id) ?? [])];
    this.#exclusive.delete(session.id);
    await Promise.all(
      names.map((name) =>
        this.#inLane<void>(name, async (answer) => {
          const queue = await readyQueue(this.#core, name);
          if (queue?.exclusive?.connection === session.id) await this.#remove(queue, answer);
          else answer();
        }),
      ),
    );
  }

  /** The names of this process's exclusive queues, by session: its new id must own them after a lapse. */
  get exclusiveQueues(): Iterable<string> {
    return [...this.#exclusive.values()].flatMap((names) => [...names]);
  }

  /** An auto-delete queue goes with its LAST consumer, never before one came. */
  async #lastConsumerWent(queue: Queue): Promise<void> {
    await this.#inLane<void>(queue.name, async (answer) => {
      const present = this.#core.topology.queue(queue.name);
      const going = present?.state === "ready" && present.id === queue.id ? present : undefined;
      if (going !== undefined && this.#core.fleet.consumers(queue.name) === 0) await this.#remove(going, answer);
      else answer();
    });
  }

  /** Marks it `deleting` and takes it away; answers as soon as no client can see it, before a long drain. */
  async #remove(queue: Queue, answer: () => void): Promise<void> {
    const { topology, fleet } = this.#core;
    const going = await untilWritten(this.#core, async () => {
      const present = topology.queue(queue.name);
      if (present?.id !== queue.id) return undefined;
      return present.state === "deleting" ? present : topology.updateQueue(present, { state: "deleting" });
    });
    if (going !== undefined) {
      await fleet.barrier(going.revision);
      if (await this.#lifecycle.isLong(going)) answer();
      await this.#finish(going);
    }
    answer();
  }

  async #finish(queue: Queue): Promise<void> {
    try {
      const exchanges = await this.#lifecycle.finishDeletion(queue);
      // Not awaited inside the queue's lane: an exchange's deletion waits for lanes of queues.
      for (const name of exchanges) void this.#exchanges.bindingsWent(name).catch((error) => this.#failed(error, name));
    } catch (error) {
      this.#unfinished(queue.name);
      throw error;
    }
  }

  #failed(error: unknown, exchange: string): void {
    this.#core.log.error({ err: error, exchange }, "an auto-delete exchange without bindings could not be deleted");
  }

  /** Runs in the queue's lane; resolves when `answer` is called, which may be before the task's end. */
  #inLane<T>(name: string, task: (answer: (value: T) => void) => Promise<void>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#core.lanes
        .run(queueLane(name), () => task(resolve))
        .catch((error: unknown) => {
          this.#core.log.error({ err: error, queue: name }, "a change of a queue failed");
          reject(error);
        });
    });
  }

  #own(session: Session, name: string): void {
    const names = this.#exclusive.get(session.id) ?? new Set<string>();
    this.#exclusive.set(session.id, names.add(name));
  }

  async #counts(queue: Queue): Promise<QueueCounts> {
    const messages = await this.#core.cursors.of(queue).ready();
    return { name: queue.name, messages, consumers: this.#core.fleet.consumers(queue.name) };
  }

  /** RabbitMQ's order: exclusiveness first, then durable, auto_delete, arguments. */
  #difference(session: Session, spec: QueueSpec, present: Queue): Refusal | undefined {
    const queue = present.name;
    if (isForeign(this.#core, session, present) || spec.exclusive !== (present.exclusive !== null))
      return refuse("queue-locked", { queue });
    const pairs: (readonly [string, string | boolean, string | boolean])[] = [
      // An exclusive queue ends with its connection: RabbitMQ does not compare how durable it is.
      ["durable", spec.exclusive ? present.durable : spec.durable, present.durable],
      ["auto_delete", spec.autoDelete, present.autoDelete],
      ["x-queue-type", spec.type, present.type],
      ["arguments", spec.arguments, present.arguments],
    ];
    for (const [argument, wanted, current] of pairs)
      if (wanted !== current)
        return refuse("inequivalent-queue", { queue, argument, wanted: String(wanted), present: String(current) });
    return undefined;
  }
}

/** RabbitMQ: a quorum queue is durable, shared and stays. */
function quorumProperty(spec: QueueSpec): string | undefined {
  if (spec.type !== "quorum") return undefined;
  if (!spec.durable) return "non-durable";
  if (spec.exclusive) return "exclusive-owner";
  return spec.autoDelete ? "auto-delete" : undefined;
}
