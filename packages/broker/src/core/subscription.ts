/**
 * A local subscription: somebody in this process who takes deliveries of a queue while his credits last.
 *
 * Responsibilities: room (the least of its credits) and waking the queue when there is some again.
 * Used by: dealing, queue. Separate because one credit may bound subscriptions of several queues.
 */
import type { Credit, CreditWaiter } from "./credit.ts";
import type { Member } from "./round-robin.ts";
import type { SubscribeOptions, Subscriber } from "./verbs.ts";

export class LocalSubscription implements CreditWaiter, Member {
  readonly subscriber: Subscriber;
  readonly acknowledge: boolean;
  readonly exclusive: boolean;
  readonly #credits: readonly Credit[];
  readonly #woken: (subscription: LocalSubscription) => void;

  /** `woken` is called whenever one of its credits was granted. */
  constructor(subscriber: Subscriber, options: SubscribeOptions, woken: (subscription: LocalSubscription) => void) {
    this.subscriber = subscriber;
    this.acknowledge = options.acknowledge;
    this.exclusive = options.exclusive;
    this.#credits = options.credits;
    this.#woken = woken;
    for (const credit of this.#credits) credit.join(this);
  }

  /** How many deliveries it can take now. */
  get room(): number {
    let room = Number.MAX_SAFE_INTEGER;
    for (const credit of this.#credits) if (credit.left < room) room = credit.left;
    return room;
  }

  /** How many deliveries are to be asked for it. */
  get wanted(): number {
    let wanted = Number.MAX_SAFE_INTEGER;
    for (const credit of this.#credits) if (credit.wanted < wanted) wanted = credit.wanted;
    return wanted;
  }

  /** One delivery goes to it. */
  take(): void {
    for (const credit of this.#credits) credit.take();
  }

  credited(): void {
    this.#woken(this);
  }

  leave(): void {
    for (const credit of this.#credits) credit.leave(this);
  }
}
