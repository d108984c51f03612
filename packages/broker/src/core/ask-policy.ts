/**
 * When to ask the bus for more, and for how many.
 *
 * Responsibilities: enough asks that nobody with credit waits, few enough that there is never one request a
 * message under load. Used by: pulling. Separate because it is pure arithmetic.
 */

/** Asked for and not come, at most, whatever the credit: what a cancelled consumer may have to hand back. */
export const MOST_OUTSTANDING = 2_000;

export class AskPolicy {
  #largest = 0;

  /** Who takes has changed: what was the largest room then says nothing now. */
  reset(): void {
    this.#largest = 0;
  }

  /**
   * How many more to ask for. `room`: deliveries that the consumers can take; `outstanding`: asked for and not
   * come yet. Everything that is missing when nothing is outstanding (so it lives at a prefetch of 1 too), else
   * only when half of the largest room seen is free.
   */
  more(room: number, outstanding: number): number {
    const wanted = Math.min(room, MOST_OUTSTANDING);
    if (wanted > this.#largest) this.#largest = wanted;
    const missing = wanted - outstanding;
    if (missing <= 0) return 0;
    return outstanding === 0 || missing * 2 >= this.#largest ? missing : 0;
  }
}
