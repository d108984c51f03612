/**
 * What a replica does for its own clients on a queue: count, purge, get, consume.
 *
 * Responsibilities: whether this connection may, the local cursor, and telling the leader of the first and the last local
 * consumer of a queue (design §4, WHO CONSUMES). Used by: replica (one each), broker, answers. Separate from queues
 * because none of it changes the topology: any replica may do it.
 */
import type { Queue } from "@amqp/topology";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import type { Consuming } from "./consumers.ts";
import { type Core, queueLane, usableQueue } from "./context.ts";
import { Lanes } from "./lanes.ts";
import type { Lead } from "./lead.ts";
import type { Delivery } from "./message.ts";
import type { QueueCounts, Session, SubscribeOptions, Subscriber, Subscription } from "./verbs.ts";

export class Consumption {
  readonly #core: Core;
  readonly #lead: Lead;
  /** Comings and goings of this replica's consumers, in order; not the leader's lanes, for which they wait. */
  readonly #lanes: Lanes = new Lanes();

  constructor(core: Core, lead: Lead) {
    this.#core = core;
    this.#lead = lead;
  }

  async check(session: Session, name: string): Promise<Refusal | QueueCounts> {
    const queue = await usableQueue(this.#core, session.id, name);
    if (isRefusal(queue)) return queue;
    const messages = await this.#core.cursors.of(queue).ready();
    return { name, messages, consumers: await this.#core.fleet.consumers(name) };
  }

  async purge(session: Session, name: string): Promise<Refusal | { readonly messages: number }> {
    const queue = await usableQueue(this.#core, session.id, name);
    return isRefusal(queue) ? queue : { messages: await this.#core.cursors.of(queue).purge() };
  }

  async get(
    session: Session,
    name: string,
    options: { readonly acknowledge: boolean },
  ): Promise<Refusal | { readonly delivery: Delivery | undefined; readonly messages: number }> {
    const queue = await usableQueue(this.#core, session.id, name);
    if (isRefusal(queue)) return queue;
    const cursor = this.#core.cursors.of(queue);
    const delivery = await cursor.get(options.acknowledge);
    return { delivery, messages: delivery === undefined ? 0 : await cursor.ready(true) };
  }

  subscribe(
    session: Session,
    name: string,
    subscriber: Subscriber,
    options: SubscribeOptions,
  ): Promise<Refusal | Subscription> {
    return this.#lanes.run(queueLane(name), async () => {
      for (;;) {
        const subscription = await this.#subscribe(session, name, subscriber, options);
        if (subscription !== "again") return subscription;
      }
    });
  }

  async #subscribe(
    session: Session,
    name: string,
    subscriber: Subscriber,
    options: SubscribeOptions,
  ): Promise<Refusal | Subscription | "again"> {
    const { cursors, topology, fleet } = this.#core;
    const queue = await usableQueue(this.#core, session.id, name);
    if (isRefusal(queue)) return queue;
    const cursor = cursors.of(queue);
    if (cursor.hasExclusive || (options.exclusive && cursor.consumers > 0))
      return refuse("exclusive-use", { queue: name });
    if (cursor.consumers === 0) {
      const asker = { replica: fleet.replica, connection: session.id };
      const refusal = await this.#lead.run("consume", { asker, queue: name, exclusive: options.exclusive });
      if (refusal !== undefined) return refusal;
    }
    // It may have been deleted since: then the mirror has ended its cursor, and this one would never hear of it. Where
    // it lives again, what was known here was out of date.
    const present = topology.queue(name);
    if (present?.state !== "ready") return refuse("no-queue", { queue: name });
    if (present.id !== queue.id) return "again";
    const subscription = cursor.subscribe(subscriber, options);
    return { cancel: () => this.#cancel(queue, subscription) };
  }

  /** What a new leader must know. */
  consuming(): Consuming[] {
    const all: Consuming[] = [];
    for (const [queue, cursor] of this.#core.cursors.all())
      if (cursor.consumers > 0) all.push({ queue, exclusive: cursor.hasExclusive });
    return all;
  }

  /** Under a new id: the leader struck the old one out. What is gone by now is cancelled by the mirror. */
  async tellAgain(): Promise<void> {
    const { fleet, topology } = this.#core;
    for (const { queue, exclusive } of this.consuming()) {
      const connection = topology.queue(queue)?.exclusive?.connection ?? "";
      await this.#lead.run("consume", { asker: { replica: fleet.replica, connection }, queue, exclusive });
    }
  }

  async #cancel(queue: Queue, subscription: { cancel(): void }): Promise<void> {
    subscription.cancel();
    await this.#lanes.run(queueLane(queue.name), async () => {
      const { cursors, fleet, topology } = this.#core;
      const present = topology.queue(queue.name);
      if (present?.state !== "ready" || present.id !== queue.id || cursors.of(present).consumers > 0) return;
      await this.#lead.run("consumed", { replica: fleet.replica, queue: queue.name, queueId: queue.id });
    });
  }
}
