/**
 * A consumer of a channel: what the core hands its deliveries to.
 *
 * Responsibilities: in one synchronous function a delivery gets its tag, is booked and its octets are appended
 * (HIP §3: tags rise in the order of writing). Nothing is delivered before consume-ok: its credit starts shut.
 * Used by: channel, handlers/basic. Separate because it lives longer than its subscription: what it was given stays
 * unacknowledged after basic.cancel.
 */
import { encodeShortstr } from "@amqp/codec";
import type { Credit } from "../core/credit.ts";
import type { Delivery } from "../core/message.ts";
import type { Subscriber, Subscription } from "../core/verbs.ts";
import type { Channel } from "./channel.ts";
import { Prefetch } from "./prefetch.ts";

/** A delivery that its client has to settle; `consumer` is undefined for one of basic.get. */
export interface Held {
  readonly delivery: Delivery;
  readonly consumer: Consumer | undefined;
}

export interface ConsumerOptions {
  readonly tag: string;
  readonly acknowledge: boolean;
  /** Of this consumer; 0 = unlimited. */
  readonly prefetchCount: number;
}

export class Consumer implements Subscriber {
  readonly tag: string;
  readonly prefetch: Prefetch = new Prefetch();
  readonly #channel: Channel;
  readonly #options: ConsumerOptions;
  readonly #encodedTag: Buffer;
  #subscription: Subscription | undefined;
  #gone: boolean = false;

  constructor(channel: Channel, options: ConsumerOptions) {
    this.tag = options.tag;
    this.#channel = channel;
    this.#options = options;
    this.#encodedTag = encodeShortstr(options.tag);
  }

  /** A consumer without acknowledgement has nothing outstanding that prefetch could count (HIP §3). */
  get credits(): readonly Credit[] {
    const { outbox } = this.#channel.connection;
    const own = this.prefetch.credit;
    return this.#options.acknowledge ? [outbox.credit, own, this.#channel.prefetch.credit] : [outbox.credit, own];
  }

  /** Its queue is gone: nothing more comes. */
  get gone(): boolean {
    return this.#gone;
  }

  /** consume-ok is written: deliveries may follow it. */
  start(subscription: Subscription): void {
    this.#subscription = subscription;
    if (!this.#gone) this.prefetch.limit(this.#options.acknowledge ? this.#options.prefetchCount : 0);
  }

  deliver(delivery: Delivery): void {
    const channel = this.#channel;
    const tag = channel.unacked.allocate();
    if (this.#options.acknowledge) {
      channel.unacked.book(tag, { delivery, consumer: this });
      this.prefetch.delivered();
      channel.prefetch.delivered();
    }
    channel.connection.outbox.deliver(channel.number, this.#encodedTag, tag, delivery);
  }

  cancelled(): void {
    this.#gone = true;
    if (this.#subscription !== undefined) this.#channel.consumerGone(this);
  }

  /** No delivery after this call; resolves when an auto-delete queue went with it. */
  async cancel(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    if (!this.#gone) await subscription?.cancel();
  }
}
