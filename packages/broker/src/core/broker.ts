/**
 * The broker: the verbs over one bus and one topology.
 *
 * Responsibilities: composing the parts, the order of boot and stop, and the publish path (synchronous, no I/O but the
 * publish itself). Used by: the package's index and the front ends, which know it as `Verbs`.
 * Separate because it is the only place that knows every part; each verb's steps are in the part's own file.
 */
import { type Bucket, Topology } from "@amqp/topology";
import { isFault, ROOT, toSubject } from "@amqp/translator";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import { Bindings } from "./bindings.ts";
import type { Bus, PublishSink } from "./bus.ts";
import { Chores } from "./chores.ts";
import { type Core, refuseFault, usableQueue } from "./context.ts";
import { Cursors } from "./cursors.ts";
import { Exchanges } from "./exchanges.ts";
import { CursorFilters } from "./filters.ts";
import { Fleet } from "./fleet.ts";
import type { Health } from "./health.ts";
import { Lanes } from "./lanes.ts";
import { Lifecycle } from "./lifecycle.ts";
import type { Log } from "./log.ts";
import type { Delivery, Properties } from "./message.ts";
import { uniqueId } from "./names.ts";
import { Presence } from "./presence.ts";
import { Queues } from "./queues.ts";
import { reconcile } from "./reconcile.ts";
import type {
  BindingSpec,
  ExchangeSpec,
  FrontEnd,
  QueueCounts,
  QueueSpec,
  Route,
  Session,
  SubscribeOptions,
  Subscriber,
  Subscription,
  Verbs,
} from "./verbs.ts";

export interface BrokerOptions {
  readonly bus: Bus;
  readonly bucket: Bucket;
  readonly health: Health;
  readonly log: Log;
  /** The milliseconds after which a message expires, if its properties say so: the front end's knowledge. */
  expirationOf(properties: Properties): number | undefined;
}

/** Thrown at boot where another replica already serves this bucket. */
export class AlreadyServed extends Error {
  override readonly name = "AlreadyServed";
}

export class Broker implements Verbs {
  readonly #core: Core;
  readonly #health: Health;
  readonly #presence: Presence;
  readonly #exchanges: Exchanges;
  readonly #queues: Queues;
  readonly #bindings: Bindings;
  readonly #chores: Chores;

  /** Mirror, leases, reconciliation: resolves when a client may be served; rejects rather than serve half a broker. */
  static async open(options: BrokerOptions): Promise<Broker> {
    const { bus, bucket, health, log } = options;
    const topology = await Topology.open(bucket, {
      root: ROOT,
      lost: (error) => {
        log.error({ err: error }, "the watch of the topology bucket is lost; closing the connections");
        health.closing("the topology of this broker is out of date; connect again");
      },
    });
    const presence = new Presence(bucket, topology, log);
    const others = await presence.others();
    if (others.length > 0) {
      await topology.close();
      throw new AlreadyServed(
        `another gateway (${others.join(", ")}) serves this bucket, and several on one bucket are not supported yet; stop it, or set AMQP_STREAM and AMQP_BUCKET to others`,
      );
    }
    const { clean } = topology.fleet();
    const suspectBelow = clean ? 0 : await bus.lastSequence();
    const broker = new Broker(options, topology, presence, suspectBelow);
    await presence.take({ renamed: (before) => broker.#renamed(before) });
    await topology.writeFleet(false);
    await broker.#reconcile();
    return broker;
  }

  private constructor(options: BrokerOptions, topology: Topology, presence: Presence, suspectBelow: number) {
    const { bus, health, log } = options;
    const cursors = new Cursors(bus, topology, {
      expirationOf: options.expirationOf,
      suspectBelow,
      holdsLease: () => presence.held(),
    });
    const fleet = new Fleet(topology, cursors, () => presence.id);
    this.#core = { bus, topology, fleet, lanes: new Lanes(), cursors, log };
    const filters = new CursorFilters(bus);
    const lifecycle = new Lifecycle(this.#core, filters);
    const chores = new Chores(this.#core, filters, lifecycle);
    const seeTo = (queue: string): void => chores.seeTo(queue);
    this.#health = health;
    this.#presence = presence;
    this.#bindings = new Bindings(this.#core, filters, seeTo);
    this.#exchanges = new Exchanges(this.#core, this.#bindings);
    this.#queues = new Queues(this.#core, lifecycle, this.#exchanges, seeTo);
    this.#chores = chores;
    this.#reconcile = () =>
      reconcile({ core: this.#core, filters, lifecycle, exchanges: this.#exchanges, chores }, true);
    topology.listen({ queueChanged: (name, queue) => cursors.queueChanged(name, queue) });
    health.attach({ away: () => cursors.away(), back: (restarted) => cursors.back(restarted) });
  }

  readonly #reconcile: () => Promise<void>;

  /**
   * A graceful stop, after the front ends closed their connections: hands back what was pulled, leaves the bucket clean.
   */
  async close(): Promise<void> {
    this.#chores.close();
    await this.#core.lanes.idle();
    await this.#core.cursors.close();
    await this.#core.topology.writeFleet(true);
    await this.#presence.release();
    await this.#core.topology.close();
  }

  openSession(): Session {
    return { id: uniqueId() };
  }

  closeSession(session: Session): Promise<void> {
    return this.#queues.sessionClosed(session);
  }

  declareExchange(spec: ExchangeSpec): Promise<Refusal | undefined> {
    return this.#exchanges.declare(spec);
  }

  checkExchange(name: string): Promise<Refusal | undefined> {
    return this.#exchanges.check(name);
  }

  deleteExchange(name: string, options: { readonly ifUnused: boolean }): Promise<Refusal | undefined> {
    return this.#exchanges.delete(name, options);
  }

  declareQueue(session: Session, spec: QueueSpec): Promise<Refusal | QueueCounts> {
    return this.#queues.declare(session, spec);
  }

  checkQueue(session: Session, name: string): Promise<Refusal | QueueCounts> {
    return this.#queues.check(session, name);
  }

  deleteQueue(
    session: Session,
    name: string,
    options: { readonly ifUnused: boolean; readonly ifEmpty: boolean },
  ): Promise<Refusal | { readonly messages: number }> {
    return this.#queues.delete(session, name, options);
  }

  purgeQueue(session: Session, name: string): Promise<Refusal | { readonly messages: number }> {
    return this.#queues.purge(session, name);
  }

  bind(
    session: Session,
    bindings: readonly BindingSpec[],
  ): Promise<{ readonly done: number; readonly refusal: Refusal | undefined }> {
    return this.#bindings.bind(session, bindings);
  }

  async unbind(session: Session, binding: BindingSpec): Promise<Refusal | undefined> {
    const closed = await this.#bindings.unbind(session, binding);
    if (isRefusal(closed)) return closed;
    if (closed) await this.#exchanges.bindingsWent(binding.exchange);
    return undefined;
  }

  get topologyVersion(): number {
    return this.#core.topology.version;
  }

  route(exchange: string, routingKey: string): Route | Refusal {
    const declared = exchange === "" ? undefined : this.#core.topology.exchange(exchange);
    if (exchange !== "" && declared?.state !== "ready") return refuse("no-exchange", { exchange });
    if (declared?.internal === true) return refuse("internal-exchange", { exchange });
    const subject = toSubject(exchange, routingKey);
    if (isFault(subject)) return refuseFault(subject);
    return { kind: "route", exchange, routingKey, exchangeKind: declared?.kind ?? "direct", subject };
  }

  routable(route: Route): boolean {
    return this.#core.topology.routes(route.exchange, route.routingKey, route.subject);
  }

  fence(): Promise<void> {
    return this.#core.topology.fence();
  }

  publish(route: Route, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void {
    this.#core.bus.publish(route.subject, properties, body, sink, tag);
  }

  get maxMessageSize(): number {
    return this.#core.bus.maxPayload;
  }

  encodedSize(propertiesLength: number): number {
    return this.#core.bus.encodedSize(propertiesLength);
  }

  get room(): boolean {
    return this.#core.bus.room;
  }

  subscribe(
    session: Session,
    queue: string,
    subscriber: Subscriber,
    options: SubscribeOptions,
  ): Promise<Refusal | Subscription> {
    return this.#queues.subscribe(session, queue, subscriber, options);
  }

  async get(
    session: Session,
    name: string,
    options: { readonly acknowledge: boolean },
  ): Promise<Refusal | { readonly delivery: Delivery | undefined; readonly messages: number }> {
    const queue = await usableQueue(this.#core, session, name);
    if (isRefusal(queue)) return queue;
    const cursor = this.#core.cursors.of(queue);
    const delivery = await cursor.get(options.acknowledge);
    return { delivery, messages: delivery === undefined ? 0 : await cursor.ready() };
  }

  requeue(deliveries: readonly Delivery[]): void {
    // A cursor gives what is requeued in one turn back in the order of the log.
    for (const delivery of deliveries) delivery.settle("requeue");
  }

  join(frontEnd: FrontEnd): void {
    this.#health.join(frontEnd);
  }

  leave(frontEnd: FrontEnd): void {
    this.#health.leave(frontEnd);
  }

  /** The lease lapsed and a new id is held: the exclusive queues of this process's connections follow it. */
  async #renamed(before: string): Promise<void> {
    const { topology, log } = this.#core;
    const others = [...topology.replicas().keys()].filter((id) => id !== this.#presence.id && id !== before);
    if (others.length > 0) {
      log.error({ others }, "another gateway took over while this one stood still; closing the connections");
      this.#health.closing("another gateway took over this broker's queues; connect to it");
    }
    for (const name of this.#queues.exclusiveQueues) {
      const queue = topology.queue(name);
      if (queue?.state !== "ready" || queue.exclusive?.replica !== before) continue;
      await topology.updateQueue(queue, { exclusive: { ...queue.exclusive, replica: this.#presence.id } });
    }
  }
}
