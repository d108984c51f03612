/**
 * The delivery path of a queue: from the message that came to the client that gets it, in one turn.
 *
 * Responsibilities: in the queue or not → expired or not → whose turn → booked → delivered; or handed back where nobody
 * can take it. Nothing here waits, but the sieve.
 * Used by: queue. Separate because it is the hot path: no promise, no closure, one object a delivery.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Topology } from "@amqp/topology";
import { fromSubject } from "@amqp/translator";
import type { Bus, Incoming } from "./bus.ts";
import { type CursorOptions, isExpired } from "./desk.ts";
import { Held, type HeldDeliveries, type Settler } from "./held.ts";
import type { Outcome } from "./message.ts";
import { NoWaitLine } from "./no-wait.ts";
import type { Pull, Puller } from "./pulling.ts";
import type { Redelivery } from "./redelivery.ts";
import { RoundRobin } from "./round-robin.ts";
import type { Settling } from "./settling.ts";
import { Sieve, type SieveSink } from "./sieve.ts";
import type { LocalSubscription } from "./subscription.ts";

/** How often strays are looked for: milliseconds pass until the bus has noticed that nobody is there. */
const LOOKS = 10;

export class Dealing implements Puller, SieveSink, Settler {
  readonly subscriptions: RoundRobin<LocalSubscription> = new RoundRobin<LocalSubscription>();
  readonly sieve: Sieve;
  readonly #name: string;
  readonly #root: string;
  readonly #bus: Bus;
  readonly #options: CursorOptions;
  readonly #held: HeldDeliveries;
  readonly #settling: Settling;
  readonly #redelivery: Redelivery;
  readonly #lost: () => void;
  #ended: boolean = false;
  /** Of what came at the bus's first attempt: the bus had given out nothing above it before. */
  #highestNew = 0;
  /** The latest message's address: a queue's messages often share one. */
  #subject = "";
  #address: { readonly exchange: string; readonly routingKey: string } | undefined;

  constructor(
    name: string,
    bus: Bus,
    topology: Topology,
    options: CursorOptions,
    held: HeldDeliveries,
    settling: Settling,
    redelivery: Redelivery,
    lost: () => void,
  ) {
    this.#lost = lost;
    this.#name = name;
    this.#root = topology.root;
    this.#bus = bus;
    this.#options = options;
    this.#held = held;
    this.#settling = settling;
    this.#redelivery = redelivery;
    this.sieve = new Sieve(name, topology, this);
  }

  get room(): number {
    // What waits behind a fence has come for some of that credit already.
    return Math.max(0, this.subscriptions.wanted - this.sieve.waiting);
  }

  /** The queue is gone: what still comes is nobody's. */
  end(): void {
    this.#ended = true;
    this.sieve.changed();
  }

  /** A message of the shared pull. */
  arrived(message: Incoming, pull: Pull): void {
    if (message.attempts === 1 && message.sequence > this.#highestNew) this.#highestNew = message.sequence;
    if (this.#ended || this.#held.renew(message) || pull.isVoid) return;
    this.sieve.pass(message, pull);
  }

  lost(): void {
    this.#lost();
  }

  dealt(): Promise<void> {
    return this.sieve.empty();
  }

  recalling(): void {
    this.#settling.defer();
  }

  async recalled(pull: Pull): Promise<void> {
    if (pull.isVoid) {
      pull.refused = [];
      return this.#settling.release();
    }
    const owes = pull.outstanding + pull.refused.length + this.#settling.owedNaks > 0;
    if (owes && !this.#ended && this.#bus.present) await this.#gather(pull).catch(() => undefined);
    const { refused } = pull;
    pull.refused = [];
    // Somebody may have got credit meanwhile: nothing is under way any more, so the order is kept. Not where older ones
    // are on their way back too.
    const isFirst = this.#settling.owedNaks === 0;
    for (const message of refused) {
      // Among them is what could not be decided while the topology was not to be asked.
      if (isFirst && this.sieve.holds(message)) this.inside(message, pull);
      else pull.refused.push(message);
    }
    for (const message of pull.refused) {
      this.#redelivery.handedBack(message.sequence, message.attempts);
      this.#settling.putBack(message);
    }
    await this.#settling.release();
  }

  inside(message: Incoming, pull: Pull): void {
    // Without the lease under which it was asked for nothing may be delivered or settled: whoever sweeps finds it.
    if (this.#ended || this.#held.renew(message) || pull.isVoid || !this.#options.holdsLease()) return;
    if (isExpired(message, this.#options, pull.waitingSince)) {
      this.#settling.finish(message);
      return;
    }
    const isRefused = pull.refusesAll || pull.refused.length > 0;
    const subscription = isRefused ? undefined : this.subscriptions.next();
    if (subscription === undefined) {
      pull.refuse(message);
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

  /**
   * Fetches what strayed: what the bus had sent, but not out yet, when the line was taken back. It puts those back by
   * itself, a little later, before or after what is handed back or asked for then: fetched, they keep their place.
   */
  async #gather(pull: Pull): Promise<void> {
    // Asked for its state, the bus also drops the requests that were taken back. Else it picks the first nak'd message
    // for one of them, finds nobody there, and puts it behind the others (both measured on 2.15.1).
    const state = await this.#bus.cursorState(this.#name);
    if (state === undefined) return;
    const back = pull.refused.length + this.#settling.owedNaks;
    const out = state.ackPending - this.#held.knownAt(state.deliveredSequence) - back;
    const strays = Math.min(pull.outstanding, out);
    if (strays <= 0) return;
    const isAlone = this.#options.isAlone();
    if (isAlone && this.#highestNew > 0) this.#redelivery.strayed(this.#highestNew, state.delivered);
    const line = new NoWaitLine(this.#bus, this.#name, (stray) => this.#settling.putBack(stray));
    pull.refusesAll = true;
    let missing = strays;
    for (let look = 1; missing > 0 && look <= (isAlone ? LOOKS : 1); look++) {
      if (look > 1) await sleep(look);
      const { messages, why } = await line.ask(missing);
      if (why === "lost" || why === "gone") break;
      for (const message of messages) {
        if (message.sequence <= state.delivered) missing--;
        this.arrived(message, pull);
      }
    }
    await line.close();
    await this.sieve.empty();
    pull.refusesAll = false;
    pull.refused.sort((a, b) => a.sequence - b.sequence);
  }

  outside(message: Incoming, pull: Pull): void {
    pull.passed();
    if (!this.#ended) this.#settling.finish(message);
  }

  undecided(message: Incoming, pull: Pull): void {
    if (!this.#ended) pull.refuse(message);
  }

  /** The delivery of a message that goes to a client now; undefined where an address has no name for clients. */
  hold(message: Incoming, acknowledge: boolean): Held | undefined {
    if (message.subject !== this.#subject) {
      this.#subject = message.subject;
      this.#address = fromSubject(message.subject, this.#root);
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
}
