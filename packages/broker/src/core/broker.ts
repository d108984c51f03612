/**
 * The broker: the verbs, as a front end asks for them, over one replica.
 *
 * Responsibilities: forwarding changes to whoever leads, what ends with a session, and the publish path (synchronous, no
 * I/O but the publish itself). Used by: place, and the front ends, which know it as `Verbs`. Separate from the replica
 * because this is what is asked, and that is what there is.
 */
import { isFault, toSubject } from "@amqp/translator";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import type { PublishSink } from "./bus.ts";
import type { Asker } from "./changes.ts";
import { refuseFault } from "./context.ts";
import type { Delivery, Properties } from "./message.ts";
import { generatedName, uniqueId } from "./names.ts";
import { Replica, type ReplicaOptions } from "./replica.ts";
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

/** Milliseconds until the exclusive queues of a connection that ended are tried to be deleted again. */
const CLOSE_AGAIN = 2_000;

export class Broker implements Verbs {
  readonly #replica: Replica;
  /** Session → its exclusive queues: what ends with it. */
  readonly #exclusive: Map<string, Set<string>> = new Map<string, Set<string>>();

  /** As {@link Replica.open}. */
  static async open(options: ReplicaOptions): Promise<Broker> {
    return new Broker(await Replica.open(options));
  }

  private constructor(replica: Replica) {
    this.#replica = replica;
  }

  /** As {@link Replica.close}. */
  close(): Promise<void> {
    return this.#replica.close();
  }

  /** As {@link Replica.holdsTransient}. */
  get holdsTransient(): boolean {
    return this.#replica.holdsTransient;
  }

  openSession(): Session {
    return { id: uniqueId() };
  }

  async closeSession(session: Session): Promise<void> {
    const names = [...(this.#exclusive.get(session.id) ?? [])];
    this.#exclusive.delete(session.id);
    if (names.length === 0) return;
    try {
      await this.#replica.lead.run("deleteOwned", { asker: this.#asker(session), names });
    } catch (error) {
      // The bus is silent: nobody but this replica deletes them while it lives.
      this.#exclusive.set(session.id, new Set(names));
      setTimeout(() => void this.closeSession(session).catch(() => undefined), CLOSE_AGAIN).unref();
      throw error;
    }
  }

  declareExchange(spec: ExchangeSpec): Promise<Refusal | undefined> {
    return this.#replica.lead.run("declareExchange", spec);
  }

  checkExchange(name: string): Promise<Refusal | undefined> {
    return this.#replica.leader.exchanges.check(name);
  }

  deleteExchange(name: string, { ifUnused }: { readonly ifUnused: boolean }): Promise<Refusal | undefined> {
    return this.#replica.lead.run("deleteExchange", { name, ifUnused });
  }

  async declareQueue(session: Session, spec: QueueSpec): Promise<Refusal | QueueCounts> {
    const named = spec.name === "" ? { ...spec, name: generatedName() } : spec;
    // Noted before: a connection that closes meanwhile must not leave it behind.
    if (named.exclusive) this.#own(session, named.name);
    const declared = await this.#replica.lead.run("declareQueue", { asker: this.#asker(session), spec: named });
    if (isRefusal(declared)) return declared;
    if (declared.made) return { name: named.name, messages: 0, consumers: 0 };
    return this.#replica.consumption.check(session, named.name);
  }

  checkQueue(session: Session, name: string): Promise<Refusal | QueueCounts> {
    return this.#replica.consumption.check(session, name);
  }

  deleteQueue(
    session: Session,
    name: string,
    options: { readonly ifUnused: boolean; readonly ifEmpty: boolean },
  ): Promise<Refusal | { readonly messages: number }> {
    return this.#replica.lead.run("deleteQueue", { asker: this.#asker(session), name, ...options });
  }

  purgeQueue(session: Session, name: string): Promise<Refusal | { readonly messages: number }> {
    return this.#replica.consumption.purge(session, name);
  }

  async bind(
    session: Session,
    bindings: readonly BindingSpec[],
  ): Promise<{ readonly done: number; readonly refusal: Refusal | undefined }> {
    const { done, refusal } = await this.#replica.lead.run("bind", { asker: this.#asker(session), bindings });
    return { done, refusal };
  }

  unbind(session: Session, binding: BindingSpec): Promise<Refusal | undefined> {
    return this.#replica.lead.run("unbind", { asker: this.#asker(session), binding });
  }

  get size(): { readonly queues: number; readonly bindings: number } {
    return this.#replica.core.topology.size;
  }

  get topologyVersion(): number {
    return this.#replica.core.topology.version;
  }

  route(exchange: string, routingKey: string): Route | Refusal {
    const declared = exchange === "" ? undefined : this.#replica.core.topology.exchange(exchange);
    if (exchange !== "" && declared?.state !== "ready") return refuse("no-exchange", { exchange });
    if (declared?.internal === true) return refuse("internal-exchange", { exchange });
    const subject = toSubject(exchange, routingKey, this.#replica.core.topology.root);
    if (isFault(subject)) return refuseFault(subject);
    return { kind: "route", exchange, routingKey, exchangeKind: declared?.kind ?? "direct", subject };
  }

  get isCurrent(): boolean {
    // Without the bus nothing changes, and nothing can be asked.
    return this.#replica.acts || !this.#replica.core.bus.present;
  }

  get holdsLease(): boolean {
    return this.#replica.acts;
  }

  routable(route: Route): boolean {
    return this.#replica.core.topology.routes(route.exchange, route.routingKey, route.subject);
  }

  fence(): Promise<void> {
    return this.#replica.core.topology.fence();
  }

  publish(route: Route, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void {
    this.#replica.core.bus.publish(route.subject, properties, body, sink, tag);
  }

  get maxMessageSize(): number {
    return this.#replica.core.bus.maxPayload;
  }

  encodedSize(propertiesLength: number): number {
    return this.#replica.core.bus.encodedSize(propertiesLength);
  }

  get room(): boolean {
    return this.#replica.core.bus.room;
  }

  subscribe(
    session: Session,
    queue: string,
    subscriber: Subscriber,
    options: SubscribeOptions,
  ): Promise<Refusal | Subscription> {
    return this.#replica.consumption.subscribe(session, queue, subscriber, options);
  }

  get(
    session: Session,
    queue: string,
    options: { readonly acknowledge: boolean },
  ): Promise<Refusal | { readonly delivery: Delivery | undefined; readonly messages: number }> {
    return this.#replica.consumption.get(session, queue, options);
  }

  requeue(deliveries: readonly Delivery[]): void {
    // A cursor gives what is requeued in one turn back in the order of the log.
    for (const delivery of deliveries) delivery.settle("requeue");
  }

  join(frontEnd: FrontEnd): void {
    this.#replica.health.join(frontEnd);
  }

  leave(frontEnd: FrontEnd): void {
    this.#replica.health.leave(frontEnd);
  }

  #asker(session: Session): Asker {
    return { replica: this.#replica.id, connection: session.id };
  }

  #own(session: Session, queue: string): void {
    const names = this.#exclusive.get(session.id) ?? new Set<string>();
    this.#exclusive.set(session.id, names.add(queue));
  }
}
