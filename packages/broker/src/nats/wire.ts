/**
 * The data path over one NATS connection: what is published and received message by message.
 *
 * Responsibilities: the port that publisher, pulls and settlements use, and the choice of who is behind it: the octets by
 * hand where the client lets us (hand-wire), else the client (client-wire). Used by: link.
 * Separate because the client costs several times what the octets by hand do (measured,
 * docs/performance.md), while connecting, TLS, authentication, reconnecting and pings are the client's and stay so.
 */
import type { NatsConnection } from "@nats-io/nats-core";
import { ClientWire } from "./client-wire.ts";
import { HandWire } from "./hand-wire.ts";
import { findSeams } from "./seams.ts";
import type { FrameHandler } from "./splitter.ts";

/** A message on its way to the bus, with its header block. */
export interface Outgoing {
  readonly subject: string;
  readonly head: Uint8Array;
  readonly body: readonly Uint8Array[];
  /** Octets of head and body. */
  readonly size: number;
}

export interface WireSubscription {
  /** Resolves when nothing can come any more; what is under way is still handed on before. */
  drain(): Promise<void>;
  unsubscribe(): void;
}

export interface Wire {
  /**
   * Asked where what is settled in a turn leaves late: may it still? Where it may not, the turn's octets are dropped, and the
   * connection made anew. The client's own calls are not asked about: they leave by themselves.
   */
  stands: () => boolean;
  /** `failed` is told where the server does not permit it. */
  subscribe(subject: string, handler: FrameHandler, failed: (error: Error) => void): WireSubscription;
  /** An empty `reply` is none. */
  publish(subject: string, reply: string, payload: Uint8Array): void;
  /** As a publish without a reply, of what {@link stands} is asked about. */
  settle(subject: string, payload: Uint8Array): void;
  /**
   * The reply is `inbox` with `number` behind it. The octets of head and body must not change until it is answered.
   *
   * @throws where the bus takes no message so large, or the connection is closed for good.
   */
  send(message: Outgoing, inbox: string, number: number): void;
  /**
   * Hands over what waits for the end of the turn. To be called before the client itself is told to send something that
   * must not overtake it.
   */
  flush(): void;
  /** Hands over what the client itself has gathered, now: it would wait for the turn's microtasks. */
  hurry(): void;
}

/** One a connection: subscriptions are numbered by it. */
const wires: WeakMap<NatsConnection, Wire> = new WeakMap<NatsConnection, Wire>();

/** The wire of a connection. */
export function wireOf(connection: NatsConnection): Wire {
  let wire = wires.get(connection);
  if (wire === undefined) {
    const seams = findSeams(connection);
    wire = seams === undefined ? new ClientWire(connection) : new HandWire(connection, seams);
    wires.set(connection, wire);
  }
  return wire;
}
