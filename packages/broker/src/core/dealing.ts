/**
 * The delivery path of a queue: from the message that came to the client that gets it, in one turn.
 *
 * Responsibilities: in the queue or not → expired or not → whose turn → booked → delivered; or handed back where nobody
 * can take it. Nothing here waits, but for the fence before a message is found to be in no interval.
 * Used by: queue. Separate because it is the hot path: no promise, no closure, one object a delivery.
 */
import type { Topology } from "@amqp/topology";
import { fromSubject } from "@amqp/translator";
import type { Incoming } from "./bus.ts";
import { type CursorOptions, isExpired } from "./desk.ts";
import { Held, type HeldDeliveries, type Settler } from "./held.ts";
import type { Outcome } from "./message.ts";
import type { Pull, Puller } from "./pulling.ts";
import type { Redelivery } from "./redelivery.ts";
import { RoundRobin } from "./round-robin.ts";
import type { Settling } from "./settling.ts";
import { Sieve, type SieveSink } from "./sieve.ts";
import type { LocalSubscription } from "./subscription.ts";

export class Dealing implements Puller, SieveSink, Settler {
  readonly subscriptions: RoundRobin<LocalSubscription> = new RoundRobin<LocalSubscription>();
  readonly sieve: Sieve;
  readonly #options: CursorOptions;
  readonly #held: HeldDeliveries;
  readonly #settling: Settling;
  readonly #redelivery: Redelivery;
  #ended: boolean = false;
  /** The latest message's address: a queue's messages often share one. */
  #subject = "";
  #address: { readonly exchange: string; readonly routingKey: string } | undefined;

  constructor(
    name: string,
    topology: Topology,
    options: CursorOptions,
    held: HeldDeliveries,
    settling: Settling,
    redelivery: Redelivery,
  ) {
    this.#options = options;
    this.#held = held;
    this.#settling = settling;
    this.#redelivery = redelivery;
    this.sieve = new Sieve(name, topology, this);
  }

  get room(): number {
    return this.subscriptions.room;
  }

  /** The queue is gone: what still comes is nobody's. */
  end(): void {
    this.#ended = true;
  }

  /** A message of the shared pull. */
  arrived(message: Incoming, pull: Pull): void {
    if (this.#ended || this.#held.renew(message)) return;
    this.sieve.pass(message, pull);
  }

  dealt(): Promise<void> {
    return this.sieve.empty();
  }

  settledAtBus(): Promise<void> {
    return this.#settling.settled();
  }

  inside(message: Incoming, pull: Pull): void {
    // Without the lease nothing may be delivered or settled: whoever sweeps finds it.
    if (this.#ended || this.#held.renew(message) || !this.#options.holdsLease()) return;
    if (isExpired(message, this.#options, pull.waitingSince)) {
      this.#settling.finish(message);
      return;
    }
    const subscription = pull.refusing ? undefined : this.subscriptions.next();
    if (subscription === undefined) {
      this.#handBack(message, pull);
      return;
    }
    const { acknowledge, subscriber } = subscription;
    const held = this.hold(message, acknowledge);
    if (held === undefined) {
      this.#settling.finish(message);
      return;
    }
    subscription.take();
    subscriber.deliver(held);
    if (!acknowledge && !this.#ended) this.#settling.finish(message);
  }

  outside(message: Incoming): void {
    if (!this.#ended) this.#settling.finish(message);
  }

  undecided(message: Incoming, pull: Pull): void {
    if (!this.#ended) this.#handBack(message, pull);
  }

  /** The delivery of a message that goes to a client now; undefined where an address has no name for clients. */
  hold(message: Incoming, acknowledge: boolean): Held | undefined {
    if (message.subject !== this.#subject) {
      this.#subject = message.subject;
      this.#address = fromSubject(message.subject);
    }
    const address = this.#address;
    if (address === undefined) return undefined;
    const redelivered = this.#redelivery.isRedelivered(message.sequence, message.attempts);
    const held = new Held(message, address.exchange, address.routingKey, redelivered, acknowledge ? this : undefined);
    this.#redelivery.wrote(message.sequence);
    if (acknowledge) this.#held.add(held);
    return held;
  }

  settled(held: Held, outcome: Outcome): void {
    this.#held.remove(held);
    if (outcome === "requeue") this.#settling.putBack(held);
    else this.#settling.finish(held, outcome === "discard" ? "term" : "ack");
  }

  /** Nobody can take it: back it goes, and so does all that comes after it on this pull. */
  #handBack(message: Incoming, pull: Pull): void {
    this.#redelivery.handedBack(message.sequence, message.attempts);
    this.#settling.putBack(message);
    pull.refuse();
  }
}
