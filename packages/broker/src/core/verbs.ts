/**
 * What a front end may ask of the core: the verbs, in no protocol's terms.
 *
 * Responsibilities: the contract between protocols (amqp091/, later AMQP 1.0) and the queues. Implemented by
 * `broker.ts`. Separate so that either side can be read, tested and replaced alone.
 *
 * Refusals are returned; what these promises reject with is a bug or a lost bus.
 * A verb that counts or changes queues waits by itself for the settlements sent to its queue before; the caller
 * first waits for its own outstanding publishes (design §5: commands are not ordered with what came before).
 */
import type { ExchangeKind } from "@amqp/translator";
import type { Refusal } from "../refusals.ts";
import type { PublishSink } from "./bus.ts";
import type { Credit } from "./credit.ts";
import type { Delivery, Properties } from "./message.ts";

/** Who asks: one client connection. Exclusive queues belong to it. */
export interface Session {
  readonly id: string;
}

export interface ExchangeSpec {
  readonly name: string;
  /** As the client said it: the core refuses what it cannot be. */
  readonly kind: string;
  readonly durable: boolean;
  readonly autoDelete: boolean;
  readonly internal: boolean;
  /** Canonical arguments, compared for equivalence and otherwise not read. */
  readonly arguments: string;
}

export interface QueueSpec {
  /** Empty: the core names it (`amq-gen-…`). */
  readonly name: string;
  readonly durable: boolean;
  readonly exclusive: boolean;
  readonly autoDelete: boolean;
  readonly type: "classic" | "quorum";
  readonly arguments: string;
}

export interface BindingSpec {
  readonly queue: string;
  readonly exchange: string;
  readonly key: string;
  readonly arguments: string;
}

export interface QueueCounts {
  readonly name: string;
  /** Ready messages: neither delivered and unsettled, nor outside every interval. */
  readonly messages: number;
  readonly consumers: number;
}

/** Where a publish goes. Valid while {@link Verbs.topologyVersion} is what it was when it was found. */
export interface Route {
  readonly kind: "route";
  readonly exchange: string;
  readonly routingKey: string;
  readonly exchangeKind: ExchangeKind;
  readonly subject: string;
}

/** Receives the deliveries of one subscription. Both calls are synchronous. */
export interface Subscriber {
  /** Book it and write it, in this call: the order of calls is the order of the queue. */
  deliver(delivery: Delivery): void;
  /** The queue is gone (deleted, or its owner lost it): nothing more comes. */
  cancelled(): void;
}

export interface SubscribeOptions {
  /** False: a delivery is complete once handed out. */
  readonly acknowledge: boolean;
  readonly exclusive: boolean;
  /** Each delivery takes one from each of these; none goes out while any of them has none left. */
  readonly credits: readonly Credit[];
}

export interface Subscription {
  /**
   * No delivery after this call. Resolves when the queue (if auto-delete, and this was its last) is gone.
   * What was delivered stays with the subscriber until it settles it.
   */
  cancel(): Promise<void>;
}

export interface Verbs {
  openSession(): Session;
  /** Its subscriptions are cancelled and its deliveries requeued by the front end before; deletes its exclusive queues. */
  closeSession(session: Session): Promise<void>;

  declareExchange(spec: ExchangeSpec): Promise<Refusal | undefined>;
  /** Passive: is it there? */
  checkExchange(name: string): Promise<Refusal | undefined>;
  deleteExchange(name: string, options: { readonly ifUnused: boolean }): Promise<Refusal | undefined>;

  declareQueue(session: Session, spec: QueueSpec): Promise<Refusal | QueueCounts>;
  /** Passive: is it there, may this session see it, and what does it hold? */
  checkQueue(session: Session, name: string): Promise<Refusal | QueueCounts>;
  deleteQueue(
    session: Session,
    name: string,
    options: { readonly ifUnused: boolean; readonly ifEmpty: boolean },
  ): Promise<Refusal | { readonly messages: number }>;
  purgeQueue(session: Session, name: string): Promise<Refusal | { readonly messages: number }>;
  /**
   * Binds in this order, up to the first refusal. What arrived together is given together (a channel's consecutive
   * binds): those of one queue become one update of its cursor.
   */
  bind(
    session: Session,
    bindings: readonly BindingSpec[],
  ): Promise<{ readonly done: number; readonly refusal: Refusal | undefined }>;
  unbind(session: Session, binding: BindingSpec): Promise<Refusal | undefined>;

  /** What there is in this namespace, as far as is known; bindings without those of the default exchange. */
  readonly size: { readonly queues: number; readonly bindings: number };
  /** Rises with every change of the topology that this replica has seen. */
  readonly topologyVersion: number;
  /** A refusal here is provisional: fence, then ask again (design §4: catch up before any negative answer). */
  route(exchange: string, routingKey: string): Route | Refusal;
  /**
   * Whether what this replica has seen of the topology is answered for: no change is called done before it has seen it.
   * Not so while its lease lapsed, since nobody waits for it: then a `true` of {@link routable} is provisional too.
   */
  readonly isCurrent: boolean;
  /** By this process's own clock, in this turn: may what was handed out be delivered, and what it took be settled? */
  readonly holdsLease: boolean;
  /** Does any queue take it? A `false` is provisional as above. */
  routable(route: Route): boolean;
  /** Catches up with the topology as it was when called. All calls of one turn share one. */
  fence(): Promise<void>;
  /** Publishes. Synchronous; the order of calls is the order in the log. The sink is told once. */
  publish(route: Route, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void;
  /** Octets of one message that the bus takes: body plus {@link encodedSize}. */
  readonly maxMessageSize: number;
  encodedSize(propertiesLength: number): number;
  /** False: stop reading publishers until told (see {@link FrontEnd.room}). */
  readonly room: boolean;

  /**
   * The first delivery may come as soon as its credits allow: a front end that must answer first grants afterwards.
   */
  subscribe(
    session: Session,
    queue: string,
    subscriber: Subscriber,
    options: SubscribeOptions,
  ): Promise<Refusal | Subscription>;
  /** Takes one ready message, if there is one; `messages` counts what is ready after it. */
  get(
    session: Session,
    queue: string,
    options: { readonly acknowledge: boolean },
  ): Promise<Refusal | { readonly delivery: Delivery | undefined; readonly messages: number }>;
  /** Requeues all of these so that each queue hands them out again in their old order. */
  requeue(deliveries: readonly Delivery[]): void;

  /** Front ends join to be told of the bus. */
  join(frontEnd: FrontEnd): void;
  leave(frontEnd: FrontEnd): void;
}

/** What the core tells a front end (one a connection or one a listener, as it likes). */
export interface FrontEnd {
  /** The bus refuses or is away: publishers should pause; `undefined` when it takes again. */
  blocked(reason: string | undefined): void;
  /** The publish window has room again. */
  room(): void;
  /** Nothing can be served: close with this reason (320 on AMQP 0-9-1), and take nobody until {@link serving}. */
  closing(reason: string): void;
  /** It can be served again. */
  serving(): void;
}
