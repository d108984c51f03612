/**
 * What clients hold: deliveries that are out and not settled.
 *
 * Responsibilities: a delivery's single end, and keeping the bus's ack wait (five minutes) from passing while a
 * client is slow, which is legal. Used by: queue and its verbs (get, purge, sweep, count).
 * Separate because a delivery outlives the subscription it went to.
 */
import type { Bus, Incoming } from "./bus.ts";
import type { Delivery, Outcome, Properties } from "./message.ts";

/** Told once how a delivery ended. */
export interface Settler {
  settled(held: Held, outcome: Outcome): void;
}

/** A message in a client's hands. */
export class Held implements Delivery {
  readonly sequence: number;
  readonly exchange: string;
  readonly routingKey: string;
  readonly properties: Properties;
  readonly body: Uint8Array;
  readonly redelivered: boolean;
  /** The cursor's number of this delivery: tells whether a state of the cursor knows of it. */
  deliverySequence: number;
  /** What the bus wants back; a copy that comes after a restart of the bus brings a newer one. */
  token: string;
  /** Absent once it ended, and from the start where nothing is to be acknowledged. */
  #settler: Settler | undefined;

  constructor(
    message: Incoming,
    exchange: string,
    routingKey: string,
    redelivered: boolean,
    settler: Settler | undefined,
  ) {
    this.sequence = message.sequence;
    this.exchange = exchange;
    this.routingKey = routingKey;
    this.properties = message.properties;
    this.body = message.body;
    this.redelivered = redelivered;
    this.deliverySequence = message.deliverySequence;
    this.token = message.token;
    this.#settler = settler;
  }

  settle(outcome: Outcome): void {
    const settler = this.#settler;
    if (settler === undefined) return;
    this.#settler = undefined;
    settler.settled(this, outcome);
  }

  /** Its queue is gone, or this process lost the right to it: whatever its client says later is swallowed. */
  forget(): void {
    this.#settler = undefined;
  }
}

/** Every delivery gets an in-progress once a round; a round is well below the bus's ack wait. */
const ROUND = 120_000;
/** A round is spread over this many ticks. */
const TICKS = 12;

/** The deliveries of one queue that are out, by sequence. */
export class HeldDeliveries {
  readonly #bus: Bus;
  readonly #mayTouch: () => boolean;
  readonly #bySequence: Map<number, Held> = new Map<number, Held>();
  #timer: NodeJS.Timeout | undefined;
  #tick = 0;

  /** `mayTouch`: does this process still have the right to answer for what it holds? */
  constructor(bus: Bus, mayTouch: () => boolean) {
    this.#bus = bus;
    this.#mayTouch = mayTouch;
  }

  get size(): number {
    return this.#bySequence.size;
  }

  has(sequence: number): boolean {
    return this.#bySequence.has(sequence);
  }

  /** How many of them a cursor knew of when it had made `deliverySequence` deliveries. */
  knownAt(deliverySequence: number): number {
    let known = 0;
    for (const held of this.#bySequence.values()) if (held.deliverySequence <= deliverySequence) known++;
    return known;
  }

  add(held: Held): void {
    this.#bySequence.set(held.sequence, held);
    if (this.#timer === undefined) this.#start();
  }

  remove(held: Held): void {
    this.#bySequence.delete(held.sequence);
  }

  /** Is this a copy of what is held? Then it only brings a newer token, and is delivered to nobody (design §5). */
  renew(message: Incoming): boolean {
    const held = this.#bySequence.get(message.sequence);
    if (held === undefined) return false;
    held.token = message.token;
    held.deliverySequence = message.deliverySequence;
    return true;
  }

  /** All of them, ascending. */
  ascending(): Held[] {
    return [...this.#bySequence.values()].sort((a, b) => a.sequence - b.sequence);
  }

  /** Lets go of all of them; what their clients say later is swallowed. */
  forget(): void {
    for (const held of this.#bySequence.values()) held.forget();
    this.#bySequence.clear();
    this.stop();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#timer = setInterval(() => this.#progress(), ROUND / TICKS);
    this.#timer.unref();
  }

  #progress(): void {
    if (this.#bySequence.size === 0) {
      this.stop();
      return;
    }
    const tick = this.#tick;
    this.#tick = (tick + 1) % TICKS;
    if (!this.#bus.present || !this.#mayTouch()) return;
    for (const held of this.#bySequence.values()) {
      if (held.sequence % TICKS === tick) this.#bus.settle(held.token, "progress");
    }
  }
}
