/**
 * How large the messages of a queue are, as far as this process has seen.
 *
 * Responsibilities: bounds how many messages a pull may ask for within its octets.
 * Used by: pull-line, one for all lines of a queue, kept between them by pulls. Separate because of a trap: a requeued
 * message that does not fit what is left of a pull is put at the END of what is to be redelivered (measured on
 * nats-server 2.15.1), so that a pull which asks for more than fits breaks the order of requeued messages. New messages
 * keep their place. So no pull asks for more than surely fits, by the largest size of late.
 */

/** Until a message came, so that a first pull asks for few: it may meet requeued messages of an earlier process. */
const ASSUMED = 16 * 1024;
const GROWTH = 8;
const DECAY = 1 / 256;
/** The numbers in an ack subject grow. */
const NUMBERS = 64;

export class Width {
  #octets: number = ASSUMED;
  #seen = false;
  /** The next message is larger than this: a pull this wide did not hold it. */
  #above = 0;

  /** The largest of late: each smaller message takes a little off. */
  get octets(): number {
    return this.#octets;
  }

  /** A pull must be wider than this. */
  get above(): number {
    return this.#above;
  }

  saw(weight: number): void {
    this.#above = 0;
    const octets = weight + NUMBERS;
    if (octets >= this.#octets || !this.#seen) this.#octets = octets;
    else this.#octets -= (this.#octets - octets) * DECAY;
    this.#seen = true;
  }

  /** The next message did not fit so many octets. */
  exceeded(octets: number): void {
    this.#above = Math.max(this.#above, octets);
    this.#octets = Math.max(this.#octets, octets * GROWTH);
  }

  /** The next message is another one. */
  gone(): void {
    this.#above = 0;
  }

  /** How many messages to ask for with so many octets. */
  fitting(octets: number): number {
    return Math.max(1, Math.floor(octets / this.#octets));
  }
}
