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
  #paused: boolean = false;
  readonly #waiters: Set<CreditWaiter> = new Set<CreditWaiter>();

  constructor(initial: number) {
    this.#left = initial;
  }

  /** Deliveries that may go out now; below zero after a grant was reduced under what is out. */
  get left(): number {
    return this.#left;
  }

  /** Deliveries that are to be asked for now: as {@link left}, and none while it is paused. */
  get wanted(): number {
    return this.#paused ? 0 : this.#left;
  }

  /** Nothing more is to be asked for; what was asked for may still go out, as far as there is credit. */
  pause(): void {
    this.#paused = true;
  }

  /** Ends {@link pause}, where there was one, and grants so many. */
  resume(count: number): void {
    this.#paused = false;
    this.grant(count);
  }

  /** One delivery goes out. The caller saw `left > 0` in this same turn. */
  take(): void {
    this.#left--;
  }

  /** `count` more may go out (fewer where negative). Wakes the subscriptions bounded by it. */
  grant(count: number): void {
    this.#left += count;
    if (count >= 0 && this.wanted > 0) for (const waiter of this.#waiters) waiter.credited();
  }

  join(waiter: CreditWaiter): void {
    this.#waiters.add(waiter);
  }

  leave(waiter: CreditWaiter): void {
    this.#waiters.delete(waiter);
  }
}
