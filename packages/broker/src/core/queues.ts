/**
 * Queues, as the leader changes them: declare, delete, and who may consume.
 *
 * Responsibilities: equivalence (406), exclusiveness (405 before 406), if-unused and if-empty, exclusive consumers,
 * auto-delete with the last consumer of the fleet. Used by: changing, reconcile's aftermath. What happens on the bus is
 * lifecycle's; what a replica does for its own clients (counts, purge, get, deliveries) is consumption's.
 */
import type { Queue } from "@amqp/topology";
import { checkName } from "@amqp/translator";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import type { CursorState } from "./bus.ts";
import type { Asker, Done } from "./changes.ts";
import type { Consumers } from "./consumers.ts";
import { type Core, isForeign, queueLane, readyQueue, refuseFault, untilWritten, usableQueue } from "./context.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { QueueSpec } from "./verbs.ts";

export class Queues {
  readonly #core: Core;
  readonly #lifecycle: Lifecycle;
  readonly #exchanges: Exchanges;
  readonly #consumers: Consumers;
  /** Told of a queue whose deletion did not come to its end. */
  readonly #unfinished: (queue: string) => void;

  constructor(
    core: Core,
    lifecycle: Lifecycle,
    exchanges: Exchanges,
    consumers: Consumers,
    unfinished: (queue: string) => void,
  ) {
    this.#core = core;
    this.#lifecycle = lifecycle;
    this.#exchanges = exchanges;
    this.#consumers = consumers;
    this.#unfinished = unfinished;
  }

  /** The spec has a name: whoever asks gave one where the client gave none. */
  async declare(asker: Asker, spec: QueueSpec): Promise<Refusal | { readonly made: boolean }> {
    const { name } = spec;
    const fault = checkName("queue", name);
    if (fault !== undefined) return refuseFault(fault);
    const unfit = quorumProperty(spec);
    if (unfit !== undefined) return refuse("quorum-property", { queue: name, argument: unfit });
    const { topology, lanes } = this.#core;
    return lanes.run(queueLane(name), () =>
      untilWritten(this.#core, async () => {
        const present = topology.queue(name);
        if (present?.state === "ready") return difference(asker, spec, present) ?? { made: false };
        // `deleting` or `making`: nothing but this lane works on it, so it was left by a crash or a silent bus.
        if (present !== undefined) await this.#finish(present, await this.#core.bus.cursorState(name));
        const made = await this.#lifecycle.make(name, spec, spec.exclusive ? asker : null);
        return made === "conflict" ? made : { made: true };
      }),
    );
  }

  async delete(
    asker: Asker,
    name: string,
    options: { readonly ifUnused: boolean; readonly ifEmpty: boolean },
  ): Promise<Refusal | { readonly messages: number }> {
    return this.#inLane(name, async (answer) => {
      const queue = await readyQueue(this.#core, name);
      if (queue === undefined) return answer({ messages: 0 });
      if (isForeign(asker.connection, queue)) return answer(refuse("queue-locked", { queue: name }));
      if (options.ifUnused && this.#consumers.has(name)) return answer(refuse("queue-in-use", { queue: name }));
      const messages = await this.#core.cursors.of(queue).ready();
      if (options.ifEmpty && messages > 0) return answer(refuse("queue-not-empty", { queue: name }));
      await this.#remove(queue, () => answer({ messages }));
    });
  }

  /** Deletes these exclusive queues, so far as they are that connection's. */
  async deleteOwned(connection: string, names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#removeIf(name, (queue) => queue.exclusive?.connection === connection)));
  }

  /** The replica is gone: so are its exclusive queues, and the auto-delete ones that it consumed last. */
  async replicaGone(replica: string): Promise<void> {
    const { topology, fleet } = this.#core;
    const orphaned = this.#consumers.replicaGone(replica);
    // Also those that it asked for under an id of before a lapse, and that were made after it had told its new one.
    const isOrphan = ({ exclusive }: Queue): boolean => exclusive !== null && !fleet.lives(exclusive);
    const owned = [...topology.queues()].filter(isOrphan);
    await Promise.all([
      ...owned.map(({ name }) => this.#removeIf(name, isOrphan)),
      ...orphaned.map((name) => this.#removeIf(name, (queue) => queue.autoDelete && !this.#consumers.has(name))),
    ]);
  }

  /** Written down, since replicas come and go: one that starts later must know what those before it gave out. */
  async doubt(name: string, upTo: number): Promise<void> {
    const { topology, lanes } = this.#core;
    await lanes.run(queueLane(name), () =>
      untilWritten(this.#core, async () => {
        const queue = topology.queue(name);
        if (queue?.state !== "ready" || (queue.suspect ?? 0) >= upTo) return undefined;
        return topology.updateQueue(queue, { suspect: upTo });
      }),
    );
  }

  /** A replica's new id owns what its old one did and nobody deleted yet. */
  async renamed(before: string, after: string): Promise<void> {
    const { topology, lanes } = this.#core;
    this.#consumers.renamed(before, after);
    const owned = [...topology.queues()].filter(({ exclusive }) => exclusive?.replica === before);
    await Promise.all(
      owned.map(({ name }) =>
        lanes.run(queueLane(name), () =>
          untilWritten(this.#core, async () => {
            const queue = topology.queue(name);
            if (queue?.state !== "ready" || queue.exclusive?.replica !== before) return undefined;
            return topology.updateQueue(queue, { exclusive: { ...queue.exclusive, replica: after } });
          }),
        ),
      ),
    );
  }

  /** May a replica's first consumer of the queue, or an exclusive one, come? */
  async consume(asker: Asker, name: string, exclusive: boolean): Promise<Done> {
    return this.#core.lanes.run(queueLane(name), async () => {
      const queue = await usableQueue(this.#core, asker.connection, name);
      if (isRefusal(queue)) return queue;
      if (!this.#consumers.mayJoin(name, asker.replica, exclusive)) return refuse("exclusive-use", { queue: name });
      if (queue.autoDelete && !queue.consumed) await this.#noteConsumed(queue);
      this.#consumers.join(name, asker.replica, exclusive);
      return undefined;
    });
  }

  /** Auto-delete queues whose last consumer went while nobody led. */
  async deleteUnconsumed(): Promise<void> {
    const left = [...this.#core.topology.queues()].filter(({ consumed }) => consumed);
    await Promise.all(left.map(({ name }) => this.#removeIf(name, () => !this.#consumers.has(name))));
  }

  /** On the bus, since the next leader must know it too. */
  async #noteConsumed(queue: Queue): Promise<void> {
    await untilWritten(this.#core, async () => {
      const present = this.#core.topology.queue(queue.name);
      return present?.id === queue.id && present.state === "ready"
        ? this.#core.topology.updateQueue(present, { consumed: true })
        : undefined;
    });
  }

  /** The last one of that replica went: an auto-delete queue goes with the LAST of the fleet, never before one came. */
  async consumed(replica: string, name: string, queueId: number): Promise<void> {
    await this.#inLane<void>(name, async (answer) => {
      const queue = this.#core.topology.queue(name);
      if (queue?.id !== queueId) return answer();
      this.#consumers.leave(name, replica);
      if (queue.state === "ready" && queue.autoDelete && !this.#consumers.has(name)) await this.#remove(queue, answer);
      else answer();
    });
  }

  async #removeIf(name: string, meant: (queue: Queue) => boolean): Promise<void> {
    await this.#inLane<void>(name, async (answer) => {
      const queue = this.#core.topology.queue(name);
      if (queue?.state === "ready" && meant(queue)) await this.#remove(queue, answer);
      else answer();
    });
  }

  /** Marks it `deleting` and takes it away; answers as soon as no client can see it, before a long drain. */
  async #remove(queue: Queue, answer: () => void): Promise<void> {
    const { topology, fleet, bus } = this.#core;
    const going = await untilWritten(this.#core, async () => {
      const present = topology.queue(queue.name);
      if (present?.id !== queue.id) return undefined;
      return present.state === "deleting" ? present : topology.updateQueue(present, { state: "deleting" });
    });
    if (going !== undefined) {
      this.#consumers.forgetQueue(queue.name);
      await fleet.barrier(going.revision);
      const state = await bus.cursorState(queue.name);
      if (state !== undefined && (await this.#lifecycle.isLong(state))) answer();
      await this.#finish(going, state);
    }
    answer();
  }

  async #finish(queue: Queue, state: CursorState | undefined): Promise<void> {
    try {
      const exchanges = await this.#lifecycle.finishDeletion(queue, state);
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
          this.#core.log.warn({ err: error, queue: name }, "a change of a queue failed");
          reject(error);
        });
    });
  }
}

/** RabbitMQ's order: exclusiveness first, then durable, auto_delete, arguments. */
function difference(asker: Asker, spec: QueueSpec, present: Queue): Refusal | undefined {
  const queue = present.name;
  if (isForeign(asker.connection, present) || spec.exclusive !== (present.exclusive !== null))
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

/** RabbitMQ: a quorum queue is durable, shared and stays. */
function quorumProperty(spec: QueueSpec): string | undefined {
  if (spec.type !== "quorum") return undefined;
  if (!spec.durable) return "non-durable";
  if (spec.exclusive) return "exclusive-owner";
  return spec.autoDelete ? "auto-delete" : undefined;
}
