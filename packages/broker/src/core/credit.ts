/**
 * Credit: how many deliveries may still be handed out. The only flow-control idea of the core.
 *
 * Responsibilities: a number that falls by one a delivery and rises when it is granted again; prefetch per
 * consumer, prefetch shared by a channel, a full socket and (later) AMQP 1.0 link credit are all it.
 * Used by: queue (takes), front ends (grant). Separate because one credit may bound several subscriptions.
 */

/** What wakes when a credit that was used up is granted again. */
export interface CreditWaiter {
  credited(): void;
}

export class Credit {
  #left: number;
  readonly #waiters: Set<CreditWaiter> = new Set<CreditWaiter>();

  constructor(initial: number) {
    this.#left = initial;
  }

  /** Deliveries that may go out now; below zero after a grant was reduced under what is out. */
  get left(): number {
    return this.#left;
  }

  /** One delivery goes out. The caller saw `left > 0` in this same turn. */
  take(): void {
    this.#left--;
  }

  /** `count` more may go out (fewer where negative). Wakes the subscriptions bounded by it. */
  grant(count: number): void {
    this.#left += count;
    if (count > 0 && this.#left > 0) for (const waiter of this.#waiters) waiter.credited();
  }

  join(waiter: CreditWaiter): void {
    this.#waiters.add(waiter);
  }

  leave(waiter: CreditWaiter): void {
    this.#waiters.delete(waiter);
  }
}
