/**
 * Prefetch: how many unacknowledged deliveries may be out, of a consumer or of a channel.
 *
 * Responsibilities: a limit over a core credit that can be changed while deliveries are out (basic.qos with `global`
 * does) and that starts shut (nothing may be delivered before consume-ok).
 * Used by: consumer (its own), channel (the shared one). Separate because its law is tested alone:
 * out + left = limit, whatever the order of calls.
 */
import { Credit } from "../core/credit.ts";

/** No prefetch limit: what the socket takes bounds it. Far above what can be out, far below where numbers stop counting. */
const UNLIMITED = 2 ** 50;

export class Prefetch {
  readonly credit: Credit = new Credit(0);
  #limit = 0;
  #out = 0;

  /** Sets the limit and with it opens the window; 0 = unlimited (AMQP basic.qos). */
  limit(count: number): void {
    this.#limit = count === 0 ? UNLIMITED : count;
    this.#align();
  }

  /** Nothing more goes out until the next {@link limit}. */
  shut(): void {
    this.#limit = Number.NEGATIVE_INFINITY;
    if (this.credit.left > 0) this.credit.grant(-this.credit.left);
  }

  get out(): number {
    return this.#out;
  }

  /** One went out: the core took a credit for it. */
  delivered(): void {
    this.#out++;
  }

  /** `count` of those that were out are settled. */
  settled(count: number): void {
    this.#out -= count;
    // Unlimited credit is not given back one by one: it would wake every subscription for nothing.
    if (this.#limit > 0 && this.#limit < UNLIMITED) this.#align();
  }

  #align(): void {
    const change = this.#limit - this.#out - this.credit.left;
    if (change !== 0) this.credit.grant(change);
  }
}
