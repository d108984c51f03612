// What happened in a torture run, as its clients saw it: every operation with when it was sent and when it was answered.
// Written by the actors, read by the laws (laws/), which know nothing of sockets. Separate because it is the one thing
// that both sides share; times are milliseconds of ONE clock, that of the process of the clients.

/** How a client's question ended. `unknown`: its connection was lost first, so it may have been done or not. */
export type Outcome = "ok" | "refused" | "unknown";

/** A message a client published in confirm mode. Its id is unique and is in its body. */
export interface Publish {
  readonly id: string;
  /** One channel of one connection, and its place among all that were published there. */
  readonly channel: string;
  readonly place: number;
  readonly exchange: string;
  readonly routingKey: string;
  readonly mandatory: boolean;
  readonly gateway: number;
  readonly sent: number;
  /** When it was confirmed or refused. */
  answered?: number;
  outcome: "acked" | "nacked" | "unknown";
  /** When it came back as unroutable. */
  returned?: number;
}

/** What an operation does to the topology, or asks of it. */
export type OperationKind =
  | "declare-exchange"
  | "delete-exchange"
  | "declare"
  | "delete"
  | "bind"
  | "unbind"
  | "consume"
  | "passive"
  | "get";

/** One question that is answered: a declaration, a binding, a consumer's beginning. */
export interface Operation {
  readonly kind: OperationKind;
  readonly queue: string;
  readonly exchange: string;
  /** The binding key. */
  readonly key: string;
  readonly gateway: number;
  readonly sent: number;
  answered?: number;
  outcome: Outcome;
  /** Of a refusal. */
  code?: number;
  text?: string;
}

/** How a client ended a delivery. `discard`: rejected without requeue. */
export type Settlement = "ack" | "requeue" | "discard";

/** A message that came to a client. */
export interface Delivery {
  readonly id: string;
  readonly queue: string;
  readonly exchange: string;
  readonly routingKey: string;
  readonly redelivered: boolean;
  readonly gateway: number;
  /** One life of a consumer; for a basic.get, its own. */
  readonly consumer: string;
  /** When the consumer (or the get) was asked for: what it brings belongs to the queue as it was from then on. */
  readonly consumerSent: number;
  readonly at: number;
  settlement?: Settlement;
  settledAt?: number;
  /** A later question on the same channel that waits for settlements was answered then. */
  syncedAt?: number;
}

/** What was done to the processes, or what one of them said happened to it. */
export interface Fault {
  readonly kind: "gateway-kill" | "gateway-stop" | "gateway-restart" | "bus-kill" | "lease-lapsed";
  /** The gateway's number; -1 for the bus. */
  readonly target: number;
  readonly from: number;
  /** When the process was back and served. */
  until: number;
}

/** What the broker's storage held when everything was drained and deleted. */
export interface Leftovers {
  readonly messages: number;
  readonly consumers: readonly string[];
  /** Keys of the bucket that are no lease of a live replica and not the fleet's. */
  readonly keys: readonly string[];
  /** Leases of replicas, and how many live. */
  readonly leases: number;
  readonly live: number;
}

/** Something that must not happen and that no law has to derive: the actor who saw it says so. */
export interface Complaint {
  readonly at: number;
  readonly text: string;
}

/** The whole run. */
export interface History {
  /** The kinds of the exchanges. */
  readonly exchanges: Readonly<Record<string, "direct" | "fanout" | "topic">>;
  readonly publishes: Publish[];
  readonly operations: Operation[];
  readonly deliveries: Delivery[];
  readonly faults: Fault[];
  readonly complaints: Complaint[];
  /** Queues that were drained at the end until nothing came any more. */
  readonly drained: Set<string>;
  leftovers?: Leftovers;
}

/** Milliseconds, never set back, comparable with the clock in the gateways' logs. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

export function emptyHistory(exchanges: History["exchanges"]): History {
  return {
    exchanges,
    publishes: [],
    operations: [],
    deliveries: [],
    faults: [],
    complaints: [],
    drained: new Set(),
  };
}
