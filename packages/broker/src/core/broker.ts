/**
 * The broker: the verbs over one bus and one topology.
 *
 * Responsibilities: composing the parts, the order of boot and stop, and the publish path (synchronous, no I/O but the
 * publish itself). Used by: the package's index and the front ends, which know it as `Verbs`.
 * Separate because it is the only place that knows every part; each verb's steps are in the part's own file.
 */
import { type Bucket, Topology } from "@amqp/topology";
import { isFault, toSubject } from "@amqp/translator";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import { Answers } from "./answers.ts";
import type { Bus, PublishSink } from "./bus.ts";
import type { Asker } from "./changes.ts";
import { Consumption } from "./consumption.ts";
import { type Core, refuseFault } from "./context.ts";
import { Cursors } from "./cursors.ts";
import { Fleet } from "./fleet.ts";
import type { Health } from "./health.ts";
import { Lanes } from "./lanes.ts";
import { Lead } from "./lead.ts";
import { Leader } from "./leader.ts";
import { Leadership } from "./leadership.ts";
import type { Log } from "./log.ts";
import type { Delivery, Properties } from "./message.ts";
import { generatedName, uniqueId } from "./names.ts";
import type { Peers } from "./peers.ts";
import { Presence, type PresenceListener } from "./presence.ts";
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
  /** The first words of every subject: `amqp`, or a namespace's own. All else that spells a subject asks the topology. */
  readonly root: string;
  readonly bus: Bus;
  readonly bucket: Bucket;
  readonly peers: Peers;
  /** It never leads: another replica does, with rights that this one may not have. */
  readonly follows?: boolean;
  readonly health: Health;
  readonly log: Log;
  /** Told once: the topology cannot be followed any more. Connections are closed by then; serve no others. */
  lost(error: Error): void;
  /** The milliseconds after which a message expires, if its properties say so: the front end's knowledge. */
  expirationOf(properties: Properties): number | undefined;
}

/** Milliseconds until the exclusive queues of a connection that ended are tried to be deleted again. */
const CLOSE_AGAIN = 2_000;

export class Broker implements Verbs {
  readonly #core: Core;
  readonly #health: Health;
  readonly #peers: Peers;
  readonly #presence: Presence;
  readonly #leadership: Leadership;
  readonly #lead: Lead;
  readonly #leader: Leader;
  readonly #consumption: Consumption;
  readonly #answers: Answers;
  /** Session → its exclusive queues: what ends with it. */
  readonly #exclusive: Map<string, Set<string>> = new Map<string, Set<string>>();
  /** No other replica lived when this one booted, and none has served since. */
  #starting: boolean;
  /** The id under which the cursors deliver and settle; behind the presence's own until what a lapse voided is dropped. */
  #acting: string = "";

  /** Mirror, leases, reconciliation: resolves when a client may be served; rejects rather than serve half a broker. */
  static async open(options: BrokerOptions): Promise<Broker> {
    const { bus, bucket, health, log } = options;
    const topology = await Topology.open(bucket, {
      root: options.root,
      lost: (error) => {
        log.error({ err: error }, "the watch of the topology bucket is lost; closing the connections");
        health.closing("the topology of this broker is out of date; connect again");
        options.lost(error);
      },
    });
    const presence = new Presence(bucket, topology, log);
    let broker: Broker | undefined;
    try {
      // One that follows came after the leader, and need not know who else is there.
      const starting = options.follows !== true && (await presence.others()).length === 0;
      // After a crash of the whole fleet nobody knows what was delivered at the end.
      const suspectBelow = starting && !topology.fleet().clean ? await bus.lastSequence() : 0;
      broker = new Broker(options, topology, presence, { starting, suspectBelow });
      await presence.take(broker.#presenceListener());
      broker.#acting = presence.id;
      if (starting) await broker.#markFleet(false);
      await broker.#leadership.seek();
      await broker.#lead.run("ready", null);
      broker.#starting = false;
      return broker;
    } catch (error) {
      await (broker === undefined ? topology.close() : broker.#end(async () => undefined));
      throw error;
    }
  }

  private constructor(
    options: BrokerOptions,
    topology: Topology,
    presence: Presence,
    boot: { readonly starting: boolean; readonly suspectBelow: number },
  ) {
    const { bus, bucket, health, log, peers } = options;
    this.#starting = boot.starting;
    const cursors: Cursors = new Cursors(bus, topology, {
      expirationOf: options.expirationOf,
      suspectBelow: boot.suspectBelow,
      holdsLease: () => this.#acts(),
      isAlone: () => this.#core.fleet.others.length === 0,
      heldElsewhere: (queue) => this.#core.fleet.heldElsewhere(queue),
      sweep: async (queue) => (await this.#lead.run("sweep", { queue })).written,
      doubt: async (queue, upTo) => void (await this.#lead.run("doubt", { queue, upTo })),
      note: (text) => log.warn({}, text),
    });
    const fleet = new Fleet(topology, cursors, peers, () => presence.id, log);
    const leadership = new Leadership(bucket, topology, presence, log, !options.follows, () =>
      this.#leader.takeOver(this.#starting, () => this.#consumption.consuming()),
    );
    this.#core = { bus, topology, fleet, lanes: new Lanes(), cursors, leadership, log };
    this.#health = health;
    this.#peers = peers;
    this.#presence = presence;
    this.#leadership = leadership;
    this.#leader = new Leader(this.#core);
    this.#lead = new Lead(topology, leadership, fleet, peers, this.#leader.changes);
    this.#consumption = new Consumption(this.#core, this.#lead);
    this.#answers = new Answers(topology, cursors, this.#consumption, this.#lead);
    topology.listen({
      queueChanged: (name, queue) => cursors.queueChanged(name, queue),
      replicaChanged: (id, alive) => {
        if (!alive) {
          fleet.replicaGone(id);
          void this.#leader.replicaGone(id);
        }
      },
      leaderChanged: (id) => {
        if (id === undefined) void leadership.seek();
      },
    });
    health.attach({
      away: () => cursors.away(),
      back: (restarted) => cursors.back(restarted),
      moved: (queue) => cursors.present(queue)?.moved(),
    });
  }

  /**
   * A graceful stop, after the front ends closed their connections: hands back what was pulled, leaves the bucket clean.
   */
  async close(): Promise<void> {
    const { fleet, topology } = this.#core;
    await this.#end(async () => {
      // Of several that stop at once the last one to give its lease up sees that it was the last.
      await topology.fence();
      if (fleet.others.length === 0) await this.#markFleet(true);
    });
  }

  /** `last` is done when this replica has gone. */
  async #end(last: () => Promise<void>): Promise<void> {
    const { cursors, topology, log } = this.#core;
    // What fails for want of a bus does not keep the rest from being done: leases then expire by themselves.
    for (const step of [
      () => this.#leader.close(),
      () => cursors.close(),
      () => this.#leadership.close(),
      () => this.#presence.release(),
      last,
      async () => this.#peers.close(),
      () => topology.close(),
    ])
      await step().catch((error: unknown) => log.warn({ err: error }, "a step of stopping the broker failed"));
  }

  /** Whether the fleet stopped well, for whoever boots next. A conflict is another replica's word, read before ours. */
  async #markFleet(clean: boolean): Promise<void> {
    const { topology, fleet } = this.#core;
    while ((await topology.writeFleet(clean)) === "conflict") if (clean && fleet.others.length > 0) return;
  }

  /** Whether something is here that a stop of the whole fleet would take: a queue or an exchange that is not durable. */
  get holdsTransient(): boolean {
    const { topology } = this.#core;
    for (const { durable } of topology.queues()) if (!durable) return true;
    for (const { durable } of topology.exchanges()) if (!durable) return true;
    return false;
  }

  openSession(): Session {
    return { id: uniqueId() };
  }

  async closeSession(session: Session): Promise<void> {
    const names = [...(this.#exclusive.get(session.id) ?? [])];
    this.#exclusive.delete(session.id);
    if (names.length === 0) return;
    try {
      await this.#lead.run("deleteOwned", { asker: this.#asker(session), names });
    } catch (error) {
      // The bus is silent: nobody but this replica deletes them while it lives.
      this.#exclusive.set(session.id, new Set(names));
      setTimeout(() => void this.closeSession(session).catch(() => undefined), CLOSE_AGAIN).unref();
      throw error;
    }
  }

  declareExchange(spec: ExchangeSpec): Promise<Refusal | undefined> {
    return this.#lead.run("declareExchange", spec);
  }

  checkExchange(name: string): Promise<Refusal | undefined> {
    return this.#leader.exchanges.check(name);
  }

  deleteExchange(name: string, { ifUnused }: { readonly ifUnused: boolean }): Promise<Refusal | undefined> {
    return this.#lead.run("deleteExchange", { name, ifUnused });
  }

  async declareQueue(session: Session, spec: QueueSpec): Promise<Refusal | QueueCounts> {
    const named = spec.name === "" ? { ...spec, name: generatedName() } : spec;
    // Noted before: a connection that closes meanwhile must not leave it behind.
    if (named.exclusive) this.#own(session, named.name);
    const declared = await this.#lead.run("declareQueue", { asker: this.#asker(session), spec: named });
    if (isRefusal(declared)) return declared;
    if (declared.made) return { name: named.name, messages: 0, consumers: 0 };
    return this.#consumption.check(session, named.name);
  }

  checkQueue(session: Session, name: string): Promise<Refusal | QueueCounts> {
    return this.#consumption.check(session, name);
  }

  deleteQueue(
    session: Session,
    name: string,
    options: { readonly ifUnused: boolean; readonly ifEmpty: boolean },
  ): Promise<Refusal | { readonly messages: number }> {
    return this.#lead.run("deleteQueue", { asker: this.#asker(session), name, ...options });
  }

  purgeQueue(session: Session, name: string): Promise<Refusal | { readonly messages: number }> {
    return this.#consumption.purge(session, name);
  }

  async bind(
    session: Session,
    bindings: readonly BindingSpec[],
  ): Promise<{ readonly done: number; readonly refusal: Refusal | undefined }> {
    const { done, refusal } = await this.#lead.run("bind", { asker: this.#asker(session), bindings });
    return { done, refusal };
  }

  unbind(session: Session, binding: BindingSpec): Promise<Refusal | undefined> {
    return this.#lead.run("unbind", { asker: this.#asker(session), binding });
  }

  get size(): { readonly queues: number; readonly bindings: number } {
    return this.#core.topology.size;
  }

  get topologyVersion(): number {
    return this.#core.topology.version;
  }

  route(exchange: string, routingKey: string): Route | Refusal {
    const declared = exchange === "" ? undefined : this.#core.topology.exchange(exchange);
    if (exchange !== "" && declared?.state !== "ready") return refuse("no-exchange", { exchange });
    if (declared?.internal === true) return refuse("internal-exchange", { exchange });
    const subject = toSubject(exchange, routingKey, this.#core.topology.root);
    if (isFault(subject)) return refuseFault(subject);
    return { kind: "route", exchange, routingKey, exchangeKind: declared?.kind ?? "direct", subject };
  }

  get isCurrent(): boolean {
    // Without the bus nothing changes, and nothing can be asked.
    return this.#acts() || !this.#core.bus.present;
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
    return this.#consumption.subscribe(session, queue, subscriber, options);
  }

  get(
    session: Session,
    queue: string,
    options: { readonly acknowledge: boolean },
  ): Promise<Refusal | { readonly delivery: Delivery | undefined; readonly messages: number }> {
    return this.#consumption.get(session, queue, options);
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

  #acts(): boolean {
    return this.#presence.held() && this.#presence.id === this.#acting;
  }

  #asker(session: Session): Asker {
    return { replica: this.#presence.id, connection: session.id };
  }

  #own(session: Session, queue: string): void {
    const names = this.#exclusive.get(session.id) ?? new Set<string>();
    this.#exclusive.set(session.id, names.add(queue));
  }

  #presenceListener(): PresenceListener {
    return {
      naming: (id) => {
        // Before another lease is held: what comes for the one before comes for nobody.
        this.#core.cursors.lapsed();
        this.#peers.serve(id, (question, details) => this.#answers.answer(question, details));
      },
      lapsed: () => {
        this.#health.absent();
        this.#core.fleet.returned();
        void this.#leadership.resign();
      },
      renamed: (former) => this.#renamed(former),
      regained: () => this.#health.present(),
    };
  }

  /** The lease lapsed and a new id is held. What others may have put back meanwhile is not this process's any more. */
  async #renamed(former: readonly string[]): Promise<void> {
    if (this.#acting !== this.#presence.id) {
      // First, and in one turn: before that, what clients settle of what they hold is not said to the bus.
      this.#acting = this.#presence.id;
      this.#core.cursors.regained(this.#core.fleet.others.length > 0);
    }
    this.#core.fleet.returned();
    await this.#leadership.seek();
    for (const before of former) await this.#lead.run("renamed", { before, after: this.#presence.id });
    await this.#consumption.tellAgain();
  }
}
