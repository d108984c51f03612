/**
 * What the verbs of a queue (get, purge, sweep, count) share with its delivery path.
 *
 * Responsibilities: the parts of one queue's cursor, in one object that a verb is given. Used by: queue, and the
 * verbs beside it. Separate so that each verb is a file that does not know the class it is called from.
 */
import type { Topology } from "@amqp/topology";
import type { Bus, Incoming } from "./bus.ts";
import type { Dealing } from "./dealing.ts";
import type { HeldDeliveries } from "./held.ts";
import type { Properties } from "./message.ts";
import type { Pulling } from "./pulling.ts";
import type { Redelivery } from "./redelivery.ts";
import type { Settling } from "./settling.ts";

/** What a cursor needs to be told by the broker. */
export interface CursorOptions {
  /** The lifetime in milliseconds that these properties give a message; undefined: it has none. */
  expirationOf(properties: Properties): number | undefined;
  /** Sequences at or below it may have been delivered before a crash: they are flagged redelivered. */
  readonly suspectBelow: number;
  /** By this process's own clock, in this turn: may it deliver and settle? */
  holdsLease(): boolean;
  /** Is there no other replica, in this turn? */
  isAlone(): boolean;
  /** What the other replicas' clients hold of that queue. */
  heldElsewhere(queue: string): Promise<ReadonlySet<number>>;
  /** Has the leader sweep that queue; resolves when it did to the highest sequence that any replica's client was given. */
  sweep(queue: string): Promise<number>;
  /** Writes down that what is stored up to there may have been delivered before the bus restarted. */
  doubt(queue: string, upTo: number): Promise<void>;
  /** Something that an operator should read; at most once a queue and reason. */
  note?(text: string): void;
}

export interface Desk {
  readonly name: string;
  readonly bus: Bus;
  readonly topology: Topology;
  readonly options: CursorOptions;
  readonly held: HeldDeliveries;
  readonly settling: Settling;
  readonly redelivery: Redelivery;
  readonly pulling: Pulling;
  readonly dealing: Dealing;
}

/**
 * Has its lifetime passed? With a lifetime of 0 it was only for whom the bus had waiting when it was stored:
 * `waitingSince` is since when that was so, milliseconds since the epoch.
 */
export function isExpired(message: Incoming, options: CursorOptions, waitingSince: number): boolean {
  const lifetime = options.expirationOf(message.properties);
  if (lifetime === undefined) return false;
  if (lifetime === 0) return message.time < waitingSince;
  return Date.now() - message.time > lifetime;
}
