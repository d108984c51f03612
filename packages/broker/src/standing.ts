/**
 * Whether what a turn of the loop has gathered still stands when it leaves.
 *
 * What a lease allows is decided message by message and written at the end of the turn. A process that is stopped in
 * between (SIGSTOP, a long collection) and goes on much later would deliver, and settle, what
 * another replica has put back and given to somebody else meanwhile (measured: up to 296 deliveries, in one of ten stops
 * under load).
 *
 * Used by: the outbox of a client's connection, the hand-wire to the bus. Separate because both gather and neither may
 * know leases. One look at the clock a turn; the lease is asked only where the turn took long.
 */
import type { ByteSink } from "@amqp/codec";

/** Where what may not leave goes. */
export const NOWHERE: ByteSink = { write: () => true, cork() {}, uncork() {} };

/** Milliseconds for which a decision stands without asking: a lease is relied upon for 300 ms less than it lasts. */
const STANDS = 200;

export class Standing {
  readonly #holds: () => boolean;
  #since = 0;
  /** Something is among it that needs the lease. */
  #needs: boolean = false;

  /** `holds`: by this process's own clock, in this turn: does it hold the lease still? */
  constructor(holds: () => boolean) {
    this.#holds = holds;
  }

  /** The first of what leaves together is gathered. */
  begin(): void {
    this.#since = performance.now();
  }

  /** What is gathered next needs the lease when it leaves. */
  need(): void {
    this.#needs = true;
  }

  /** Whether what was gathered may leave; once asked, for what comes after it the question is a new one. */
  mayLeave(): boolean {
    const stands = !this.#needs || performance.now() - this.#since < STANDS || this.#holds();
    this.#needs = false;
    return stands;
  }
}
