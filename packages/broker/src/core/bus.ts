/**
 * The port to the bus: one log that is published to, and cursors in it that are pulled from.
 *
 * Responsibilities: everything the core needs of JetStream, in the core's terms.
 * Used by: core. Implemented by: nats/. Kept apart so that the core can be read without the client's API,
 * and so that the data path's mechanics (rings, inboxes, budgets) live in one place.
 */
import type { Permit } from "@amqp/topology";
import type { Properties } from "./message.ts";

/**
 * What became of a publish. `stored`: PubAck received. `full`: the log refuses for lack of room.
 * `denied`: this login may not publish there. `refused`: any other refusal by the bus. `unknown`: the bus went away
 * before it answered.
 */
export type PublishOutcome = "stored" | "full" | "denied" | "refused" | "unknown";

/** Told once of every publish, in no fixed order. `tag` is the publisher's own number. */
export interface PublishSink {
  /** `subject` says where, if it was `denied`. */
  published(tag: number, outcome: PublishOutcome, subject?: string): void;
}

/** How a pulled message is answered to the bus. `progress` restarts its ack wait. */
export type Settlement = "ack" | "nak" | "term" | "progress";

/** A message as it came from the bus. */
export interface Incoming {
  /** The stream sequence. */
  readonly sequence: number;
  /** The cursor's own running number. */
  readonly deliverySequence: number;
  /** 1 on the first delivery that the bus remembers. */
  readonly attempts: number;
  /** When it was stored, milliseconds since the epoch. */
  readonly time: number;
  readonly subject: string;
  readonly properties: Properties;
  readonly body: Uint8Array;
  /** What {@link Bus.settle} wants back. */
  readonly token: string;
}

export interface PullSink {
  message(message: Incoming): void;
  /**
   * `missing` of the messages asked for will not come. `empty`: a no-wait ask found nothing (or no more);
   * `expired`: its time was up, or for a no-wait ask: other pulls wait, so look again; `gone`: the cursor was
   * deleted; `lost`: the bus went away, changed leader or forgot the ask (reported after a pause while it is
   * present). The line lives on after each but `gone`; an ask made while the bus is away is sent when it is back.
   * A message of an ask that was counted as lost may still come.
   */
  ended(missing: number, why: "empty" | "expired" | "gone" | "lost"): void;
}

/** One generation of pulls on a queue, with an inbox of its own. */
export interface PullLine {
  /**
   * Asks for up to `count` more. The line sees to the budget in octets (an ask may wait for room), to a
   * message larger than its share, and to asks that the bus forgot; each message asked for is answered
   * by `message` or counted in `ended`.
   */
  ask(count: number, wait: boolean): void;
  /**
   * Takes back what was asked: resolves when nothing more can arrive. Messages that were under way are
   * still given to the sink before that. The line is dead then.
   */
  takeBack(): Promise<void>;
}

/** A queue's cursor as the bus should have it. */
export interface CursorSpec {
  readonly queue: string;
  /** An antichain, never empty: an empty set would mean the whole log. */
  readonly filters: readonly string[];
  /** The KV revision this was made from, kept in the cursor's metadata. */
  readonly revision: number;
  /** The creation revision of the queue's record: which life of the queue this cursor belongs to. */
  readonly queueId: number;
}

/** A queue's cursor as the bus has it. */
export interface CursorState extends CursorSpec {
  /** Matching messages not delivered yet. */
  readonly pending: number;
  /** Delivered (or nak'd) and not settled. */
  readonly ackPending: number;
  /** Every sequence at or below it is settled or does not match. */
  readonly ackFloor: number;
  /** The highest stream sequence delivered, and the cursor's own number of it. */
  readonly delivered: number;
  readonly deliveredSequence: number;
  /** In a cluster: nobody leads it for the moment, so that nothing but its name is known. Only in lists. */
  readonly isSilent?: boolean;
}

/** What the core is told of the bus's health. */
export interface BusListener {
  /** The bus went away: what was under way has been or will be answered `unknown`; pulls end as `lost`. */
  away(): void;
  /** It is back. `restarted`: the server (or a leader) lost volatile state: nak'd state, recent acks. */
  back(restarted: boolean): void;
  /** Publishes began (`true`) or ceased (`false`) to be refused for lack of room. */
  full(full: boolean): void;
  /** {@link Bus.room} became true again. */
  room(): void;
  /**
   * The log has no leader (`true`: publishes are held, in order, pulls may go on) or has one again (`false`).
   * Held messages are stored later, or `refused` after the bus timeout.
   */
  stalled?(stalled: boolean): void;
  /** In a cluster: another server leads that queue's cursor, and may not know what the last one was told at its end. */
  moved?(queue: string): void;
  /** Asked in the turn in which settlements leave: may they, if they were said a while ago? */
  stands?(): boolean;
}

export interface LogState {
  readonly messages: number;
  readonly bytes: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Cursors on it, those of others than this software included. */
  readonly consumers: number;
}

/** Thrown by the verbs below when the bus refuses or stays silent; `timeout` means: the outcome is unknown. */
export interface BusErrorShape {
  readonly code: number;
  readonly timeout: boolean;
}

/** Whether something that was thrown is of that shape, whichever class of whichever package it is. */
export function isBusError(error: unknown): error is BusErrorShape {
  const shape = error as { readonly code?: unknown; readonly timeout?: unknown } | null;
  return typeof shape === "object" && typeof shape?.code === "number" && typeof shape.timeout === "boolean";
}

/** What could not be done because the bus, or this replica's lease on it, went away: of the shape of its errors. */
export class BusAway extends Error implements BusErrorShape {
  override readonly name: string = "BusAway";
  readonly code: number = 0;
  readonly timeout: boolean = true;
}

export interface UpdateOptions {
  /**
   * As of every change of a cursor: JetStream has no compare-and-set for consumers, and what waited for a connection, or in
   * a process that stood still, is not to undo what the next leader did.
   */
  readonly permit?: Permit;
  /** What is pulled from now on comes without its body. */
  readonly headersOnly?: boolean;
}

export interface Bus {
  /** Octets of one message that the bus takes: body plus encoded properties. */
  readonly maxPayload: number;
  /**
   * How many octets `properties` takes of {@link maxPayload} when encoded for the bus; infinite where the bus takes
   * no properties of that length at all.
   */
  encodedSize(propertiesLength: number): number;
  /** False while the window of unanswered publishes is full: readers stop until {@link BusListener.room}. */
  readonly room: boolean;
  /** True while the bus is reachable. */
  readonly present: boolean;
  /**
   * Publishes; never waits, keeps the order of the calls. Accepts (holds) also while there is no room.
   * The octets must not change before the sink is told: a message that no leader took is sent again.
   */
  publish(subject: string, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void;

  /** Stores an empty message, at once or not at all; rejects where it is not known whether it was. */
  store(subject: string, permit: Permit): Promise<PublishOutcome>;

  openPull(queue: string, sink: PullSink): PullLine;
  /** This process pulls from the queue no more: its lines end as `gone`, and what was learnt of it between them is void. */
  forget(queue: string): void;
  /** Answers a pulled message; never waits. What is sent in one turn leaves in one write, in order. */
  settle(token: string, how: Settlement): void;
  /** Naks a delivery whose token nobody has any more (design §6, SWEEP); ignored where it is not pending. */
  nakAbandoned(queue: string, sequence: number, deliverySequence: number): void;
  /** As {@link nakAbandoned}, acknowledging it. */
  ackAbandoned(queue: string, sequence: number, deliverySequence: number): void;
  /**
   * Resolves when the bus has processed every settlement sent to that queue so far. False: it did not answer at once, so
   * that some of them may have been sent while nobody led the cursor, and are lost.
   */
  settled(queue: string): Promise<boolean>;

  /** Whether several servers keep the log and lead in turn. */
  readonly isClustered: boolean;
  /** Resolves when whoever leads the queue's cursor has what is in the log now; at once where there is but one server. */
  abreast(queue: string): Promise<void>;
  /** `age`: milliseconds since which an earlier answer will do; none by default. */
  logState(age?: number): Promise<LogState>;
  lastSequence(): Promise<number>;

  /** Succeeds also where the very same one is there already; fails where another one is. */
  createCursor(spec: CursorSpec, permit?: Permit): Promise<void>;
  /** Changes an existing cursor only; `false` where there is none (never resurrects a deleted one). */
  updateCursor(spec: CursorSpec, options?: UpdateOptions): Promise<boolean>;
  /** `false` where there was none. */
  deleteCursor(queue: string, permit?: Permit): Promise<boolean>;
  cursorState(queue: string): Promise<CursorState | undefined>;
  /** Every cursor that this software made, by its metadata; those of others on the log are not listed. */
  cursors(): Promise<readonly CursorState[]>;
  /** Messages in the log above `above` on these filters (an antichain), by a throwaway counting cursor: not for clusters. */
  count(filters: readonly string[], above: number): Promise<number>;
  /** The sequence of the log's first message above `above` on this filter, as the log's leader has it; undefined: none. */
  nextAbove(filter: string, above: number): Promise<number | undefined>;
  /** Removes interest in what lies above `above` on these filters, by a short-lived acking cursor; resolves to how many. */
  collect(filters: readonly string[], above: number): Promise<number>;
  /** The bus's identity for this run of it: another value means that volatile state was lost. */
  readonly incarnation: string;
}
