/**
 * Publishes sent and not answered yet.
 *
 * Responsibilities: a ring indexed by a running number, so that an answer finds its publish without a map; the sums that
 * the window is measured by. Used by: publisher. Separate because it is plain bookkeeping on the hot path.
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

/** Twice the window: a straggler blocks nothing before as many again were answered. */
const RING = 8_192;

export class InFlight {
  readonly #ring: (Publish | undefined)[] = new Array<Publish | undefined>(RING).fill(undefined);
  #next = 1;
  #oldest = 1;
  #count = 0;
  #octets = 0;

  get count(): number {
    return this.#count;
  }

  get octets(): number {
    return this.#octets;
  }

  /** The number that the next one gets. */
  get next(): number {
    return this.#next;
  }

  /** False while the place of the next number is still taken. */
  get free(): boolean {
    return this.#ring[this.#next % RING] === undefined;
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
