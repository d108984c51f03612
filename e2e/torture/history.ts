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
  | "purge"
  | "get";

/** One question that is answered: a declaration, a binding, a consumer's beginning. */
export interface Operation {
  readonly kind: OperationKind;
  /** Of a server-named one it is known with the answer. */
  queue: string;
  readonly exchange: string;
  /** The binding key. */
  readonly key: string;
  readonly gateway: number;
  /** Whose connection asked, where that decides: exclusive queues. */
  readonly asker?: string;
  readonly sent: number;
  answered?: number;
  outcome: Outcome;
  /** Of a refusal. */
  code?: number;
  text?: string;
  /** What purge-ok said. */
  messages?: number;
}

/** How a delivery ended. `discard`: rejected without requeue; `sent`: to a consumer without acknowledgement, by being sent. */
export type Settlement = "ack" | "requeue" | "discard" | "sent";

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

/** One life of a consumer; a basic.get has one that lasts as long as its question. */
export interface Life {
  readonly consumer: string;
  readonly queue: string;
  readonly noAck: boolean;
  readonly gateway: number;
  /** When it was asked for: from then on it may be given messages. */
  readonly from: number;
  /** When its client began to leave, or found that its connection is gone: what it held may be ready from then on. */
  leaving?: number;
  ended?: number;
  /** The broker had the last word (cancel-ok, close-ok, a close or a cancel of its own): all that it sent was read. */
  inOrder: boolean;
}

/** An exclusive queue in the hands of a connection, from its declaration on. */
export interface Ownership {
  readonly queue: string;
  /** The connection, as operations name it. */
  readonly owner: string;
  readonly gateway: number;
  readonly sent: number;
  /** When it was declared for sure; absent where the connection was lost before. */
  readonly answered?: number;
  /** When the owner began to close, delete or crash, or found its connection gone. */
  until?: number;
  /** When its socket was closed, or its deletion answered. */
  ended?: number;
  /** When another connection was first told that there is no such queue any more. */
  gone?: number;
}

/** What was done to the processes, or what one of them said happened to it. */
export interface Fault {
  readonly kind: "gateway-kill" | "gateway-stop" | "gateway-restart" | "bus-kill" | "server-kill" | "lease-lapsed";
  /** The gateway's number; -1 for the bus, also where it is one of three servers that died (`server-kill`). */
  readonly target: number;
  readonly from: number;
  /** When the process was back and served; of three servers, when each had every copy again. */
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
  readonly lives: Life[];
  readonly ownerships: Ownership[];
  readonly faults: Fault[];
  readonly complaints: Complaint[];
  /** Queues that were drained at the end until nothing came any more, and when they were: then all is deleted. */
  readonly drained: Map<string, number>;
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
    lives: [],
    ownerships: [],
    faults: [],
    complaints: [],
    drained: new Map(),
  };
}
