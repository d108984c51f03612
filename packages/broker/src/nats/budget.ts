/**
 * Octets that may be under way to this process on one connection (design §6).
 *
 * Responsibilities: shares of 40 MiB for pulls, in order of asking; a separate reserve for the one message that is
 * larger than any share. Together they stay below the 64 MiB at which the server closes a slow connection.
 * Used by: pulls (one a connection), pull-line. Separate because every line of the connection draws on the same sum.
 *
 * Shares: half of the sum is dealt evenly over all lines, so that thousands of idle queues each have one; the rest goes
 * in quarters of what is left to those whose appetite grew because messages came. Who finds nothing waits, first come
 * first served; idle lines give theirs back when their ask expires, within seconds.
 */
import { Queue } from "./queue.ts";

export const PULL_OCTETS: number = 40 * 1024 * 1024;
const LARGE_OCTETS: number = 16 * 1024 * 1024;
const LEAST_SHARE = 1_024;
const FIRST_SHARE: number = 256 * 1024;
/** No single share is larger; what exceeds it comes out of the reserve, one at a time. */
export const MOST_SHARE: number = 4 * 1024 * 1024;

/** Who waits for room. `granted` may be called long after; it says whether the share is still wanted. */
export interface BudgetWaiter {
  granted(octets: number): boolean;
  readonly appetite: number;
}

export class Budget {
  readonly #waiting: Queue<BudgetWaiter> = new Queue();
  readonly #waitingLarge: Queue<BudgetWaiter> = new Queue();
  #free: number = PULL_OCTETS;
  #freeLarge: number;
  #largest: number;
  /** Lines that may ask: set by who opens and closes them. */
  lines = 0;

  /** `largest`: what the largest message weighs, its subjects and headers included. */
  constructor(largest: number) {
    this.#largest = largest;
    // At least one must fit, however large the bus's messages are.
    this.#freeLarge = Math.max(LARGE_OCTETS, largest);
  }

  get largest(): number {
    return this.#largest;
  }

  /** Octets not given out. */
  get free(): number {
    return this.#free;
  }

  /** Gives a share now or later. */
  take(waiter: BudgetWaiter): void {
    this.#waiting.push(waiter);
    this.#deal();
  }

  giveBack(octets: number): void {
    if (octets <= 0) return;
    this.#free += octets;
    if (this.#waiting.length > 0) this.#deal();
  }

  /** Room for one message of any size, now or later. */
  takeLargest(waiter: BudgetWaiter): void {
    this.#waitingLarge.push(waiter);
    this.#dealLarge();
  }

  giveBackLargest(): void {
    this.#freeLarge += this.#largest;
    this.#dealLarge();
  }

  #deal(): void {
    while (this.#waiting.length > 0 && this.#free >= LEAST_SHARE) {
      const waiter = this.#waiting.shift();
      if (waiter === undefined) return;
      const share = this.#share(waiter.appetite);
      this.#free -= share;
      if (!waiter.granted(share)) this.#free += share;
    }
  }

  #share(appetite: number): number {
    const even = Math.min(FIRST_SHARE, Math.floor(PULL_OCTETS / 2 / Math.max(1, this.lines)));
    const wanted = appetite > even ? Math.min(appetite, MOST_SHARE, Math.max(even, this.#free >> 2)) : even;
    return Math.min(this.#free, Math.max(LEAST_SHARE, wanted));
  }

  #dealLarge(): void {
    while (this.#waitingLarge.length > 0 && this.#freeLarge >= this.#largest) {
      const waiter = this.#waitingLarge.shift();
      if (waiter === undefined) return;
      this.#freeLarge -= this.#largest;
      if (!waiter.granted(this.#largest)) this.#freeLarge += this.#largest;
    }
  }
}
