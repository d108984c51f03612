/**
 * Publishes sent and not answered yet, and the window that bounds them.
 *
 * Responsibilities: a ring indexed by a running number, so that an answer finds its publish without a map; whether the
 * window is full. Used by: publisher. Separate because it is plain bookkeeping on the hot path.
 */
import type { PublishSink } from "../core/bus.ts";
import type { Outgoing } from "./wire.ts";

/** A message on its way, kept whole until it is answered: without a leader it is sent again. */
export interface Publish extends Outgoing {
  readonly sink: PublishSink;
  readonly tag: number;
  /** Of the last time it was sent. */
  number: number;
}

/** In flight at most, sized so that the server does not answer 429 (design §7). */
const WINDOW_MESSAGES = 4_000;
export const WINDOW_OCTETS: number = 32 * 1024 * 1024;
/** Twice the window: a straggler blocks nothing before as many again were answered. */
const RING = 8_192;

export class InFlight {
  readonly #ring: (Publish | undefined)[] = new Array<Publish | undefined>(RING).fill(undefined);
  readonly #windowOctets: number;
  #next = 1;
  #oldest = 1;
  #count = 0;
  #octets = 0;

  constructor(windowOctets: number = WINDOW_OCTETS) {
    this.#windowOctets = windowOctets;
  }

  get count(): number {
    return this.#count;
  }

  /** The number that the next one gets. */
  get next(): number {
    return this.#next;
  }

  /** Another one may be sent: the window is not full, and the place of the next number is not still taken. */
  get free(): boolean {
    return this.#ring[this.#next % RING] === undefined && !this.isFull();
  }

  /** Whether they fill the window, or that part of it. */
  isFull(part: number = 1): boolean {
    return this.#count >= WINDOW_MESSAGES * part || this.#octets >= this.#windowOctets * part;
  }

  add(publish: Publish): number {
    const number = this.#next++;
    publish.number = number;
    this.#ring[number % RING] = publish;
    this.#count++;
    this.#octets += publish.size;
    return number;
  }

  /** `undefined` where it was answered or given up before. */
  find(number: number): Publish | undefined {
    const publish = this.#ring[number % RING];
    return publish !== undefined && publish.number === number ? publish : undefined;
  }

  remove(publish: Publish): void {
    this.#ring[publish.number % RING] = undefined;
    this.#count--;
    this.#octets -= publish.size;
  }

  /** The one that was sent first to that subject. */
  oldestOn(subject: string): Publish | undefined {
    for (let number = Math.max(1, this.#next - RING); number < this.#next; number++) {
      const publish = this.find(number);
      if (publish?.subject === subject) return publish;
    }
    return undefined;
  }

  /** Removes all numbers below, oldest first. */
  removeBelow(below: number, each: (publish: Publish) => void): void {
    for (let number = this.#oldest; number < below; number++) {
      const publish = this.find(number);
      if (publish === undefined) continue;
      this.remove(publish);
      each(publish);
    }
    this.#oldest = Math.max(this.#oldest, below);
  }
}
