/**
 * The sequences of one queue that were acknowledged last.
 *
 * Responsibilities: an acknowledgement can be lost after it was sent: nobody leads the queue's consumer, or the one who
 * did died before another server had it (measured on three servers: 460 of 1,000 sent just before a kill), or the bus
 * went down with its last 100 ms. What is remembered here is said again then. Used by: settling. Separate because it is
 * pure, and stands on the path of every acknowledgement.
 */

/** Grows from the one to the other; the oldest are forgotten then. */
const LEAST = 64;
const MOST = 4_096;

export class Acknowledged {
  #ring: Float64Array = new Float64Array(0);
  #count = 0;

  add(sequence: number): void {
    if (this.#count === this.#ring.length && this.#count < MOST) this.#grow();
    this.#ring[this.#count++ % this.#ring.length] = sequence;
  }

  forget(): void {
    this.#ring = new Float64Array(0);
    this.#count = 0;
  }

  /** Those above `floor` that are remembered, oldest first. */
  above(floor: number): number[] {
    const found: number[] = [];
    const { length } = this.#ring;
    for (let at = Math.max(0, this.#count - length); at < this.#count; at++) {
      const sequence = this.#ring[at % length] ?? 0;
      if (sequence > floor) found.push(sequence);
    }
    return found;
  }

  /** Only while it has not gone round yet. */
  #grow(): void {
    const ring = new Float64Array(Math.max(LEAST, this.#ring.length * 2));
    ring.set(this.#ring);
    this.#ring = ring;
  }
}
