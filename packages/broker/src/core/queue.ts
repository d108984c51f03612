/**
 * A queue as this process has it: the local cursor, its subscriptions, and what their clients hold.
 *
 * Responsibilities: puts the parts together (pulling → sieve → dealing → held → settling) and is the door to the verbs
 * of one queue, each in a file beside this one. Used by: cursors, one for each queue that is consumed, read or counted
 * here. Separate from the broker because it knows one queue and no declaration. Its states are drawn in `pulling.ts`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Topology } from "@amqp/topology";
import type { Bus } from "./bus.ts";
import { countReady } from "./count.ts";
import { Dealing } from "./dealing.ts";
import type { CursorOptions, Desk } from "./desk.ts";
import { Getter } from "./get.ts";
import { HeldDeliveries } from "./held.ts";
import type { Delivery } from "./message.ts";
import { Pulling, type PullingState } from "./pulling.ts";
import { purge } from "./purge.ts";
import { Redelivery } from "./redelivery.ts";
import { Settling } from "./settling.ts";
import { LocalSubscription } from "./subscription.ts";
import { sweep } from "./sweep.ts";
import { Turns } from "./turns.ts";
import type { SubscribeOptions, Subscriber } from "./verbs.ts";

export type { CursorOptions } from "./desk.ts";

const NOWHERE: ReadonlySet<number> = new Set<number>();

/** Between two tries to sweep after the bus came back, milliseconds. */
const RECOVERY_PAUSE = 500;

export class QueueCursor {
  readonly name: string;
  readonly #options: CursorOptions;
  readonly #held: HeldDeliveries;
  readonly #settling: Settling;
  readonly #redelivery: Redelivery;
  readonly #dealing: Dealing;
  readonly #pulling: Pulling;
  readonly #desk: Desk;
  readonly #turns: Turns = new Turns();
  readonly #getter: Getter;
  readonly #woken: (subscription: LocalSubscription) => void;
  #gone: boolean = false;
  /** Rises when the bus goes and when it comes: a sweep that another one overtook ends nothing. */
  #recovery = 0;
  #noted: boolean = false;
  /** The bus restarted, and what the others had written by then is not known yet. */
  #restarted: boolean = false;

  constructor(name: string, bus: Bus, topology: Topology, options: CursorOptions) {
    this.name = name;
    this.#options = options;
    const holdsLease = (): boolean => options.holdsLease();
    this.#held = new HeldDeliveries(bus, holdsLease);
    this.#settling = new Settling(name, bus, holdsLease);
    this.#redelivery = new Redelivery(Math.max(options.suspectBelow, topology.queue(name)?.suspect ?? 0));
    const lost = (): void => this.moved();
    this.#dealing = new Dealing(name, bus, topology, options, this.#held, this.#settling, this.#redelivery, lost);
    this.#pulling = new Pulling(name, bus, this.#dealing);
    this.#woken = (subscription) => {
      this.#dealing.subscriptions.wake(subscription);
      this.#pulling.wanted();
    };
    this.#desk = {
      name,
      bus,
      topology,
      options,
      held: this.#held,
      settling: this.#settling,
      redelivery: this.#redelivery,
      pulling: this.#pulling,
      dealing: this.#dealing,
    };
    this.#getter = new Getter(this.#desk, this.#turns, () => !this.#restarted);
  }

  /** Subscriptions in this process. */
  get consumers(): number {
    return this.#dealing.subscriptions.size;
  }

  get hasExclusive(): boolean {
    for (const { exclusive } of this.#dealing.subscriptions) if (exclusive) return true;
    return false;
  }

  /** Deliveries in the hands of this process's clients. */
  get held(): number {
    return this.#held.size;
  }

  /** The sequences of what is {@link held}, ascending: what another replica's sweep must spare. */
  get heldSequences(): number[] {
    return this.#held.ascending().map(({ sequence }) => sequence);
  }

  /** The highest sequence that went to a client of this process. */
  get written(): number {
    return this.#redelivery.highestWritten;
  }

  /** See the queue's record. */
  suspect(sequence: number): void {
    this.#redelivery.suspect(sequence);
  }

  /** A binding of the queue changed. */
  bindingChanged(): void {
    this.#dealing.sieve.changed();
  }

  get state(): PullingState {
    return this.#pulling.state;
  }

  subscribe(subscriber: Subscriber, options: SubscribeOptions): { cancel(): void } {
    const subscription = new LocalSubscription(subscriber, options, this.#woken);
    this.#dealing.subscriptions.add(subscription);
    this.#pulling.takersChanged();
    return { cancel: () => this.#cancel(subscription) };
  }

  /** Takes one ready message; sees what this process settled before. Undefined: there was none. */
  get(acknowledge: boolean): Promise<Delivery | undefined> {
    return this.#gone ? Promise.resolve(undefined) : this.#getter.get(acknowledge);
  }

  /**
   * Removes what is ready and was in the log when it began, not what clients hold. Resolves to how many messages
   * that were; expired ones do not count.
   */
  purge(): Promise<number> {
    return purge(this.#desk, this.#turns, () => this.#gone);
  }

  /**
   * Ready messages, after what this process settled: exact but where the log's end is too far to look (then a bound,
   * which is noted once). `quick`: may lack what was stored in the last milliseconds, and costs one request.
   */
  async ready(quick: boolean = false): Promise<number> {
    const { messages, bound } = await countReady(this.#desk, quick);
    if (bound && !this.#noted) {
      this.#noted = true;
      this.#options.note?.(
        `queue '${this.name}': the message count is an upper bound until its backlog above its latest binding is consumed`,
      );
    }
    return messages;
  }

  /** Puts back whatever was delivered and is in nobody's hands, here or `elsewhere` (design §6, SWEEP). */
  sweep(elsewhere: ReadonlySet<number> = NOWHERE): Promise<void> {
    return this.#turns.run(async () => (this.#gone ? undefined : sweep(this.#desk, elsewhere)));
  }

  /**
   * For the leader's sweep: asks for nothing more until {@link resume} and resolves, once nothing can arrive and everything
   * settled was processed by the bus, to what is held. Each pause needs its resume.
   */
  async pause(): Promise<readonly number[]> {
    await this.#pulling.pause();
    const state = await this.#desk.bus.cursorState(this.name);
    // Else the sweep would put back what was acknowledged here and lost on its way.
    if (state !== undefined && state.ackPending > 0) this.#settling.sayAgain(state.ackFloor);
    await this.#settling.settled();
    return this.heldSequences;
  }

  resume(): void {
    this.#pulling.resume();
  }

  /** What this process's clients hold, once everything they settled was processed by the bus. */
  async holding(): Promise<readonly number[]> {
    await this.#settling.settled();
    return this.heldSequences;
  }

  /** The lease lapsed: what is under way to this process is not its own any more, even when it holds another one. */
  lapsed(): void {
    this.#recovery++;
    this.#pulling.lapsed();
    this.#getter.lapsed();
  }

  /** The lease is held again after a lapse. `swept`: others put back what was held here; then it is void. */
  regained(swept: boolean): void {
    // Also what was asked for without a lease.
    this.lapsed();
    if (swept) {
      this.#settling.drop();
      this.#held.forget();
    } else this.#settling.regained();
    void this.#recover(++this.#recovery);
  }

  /** The bus is away: nothing is asked, and what is settled waits. */
  away(): void {
    this.#recovery++;
    this.#pulling.away();
    this.#getter.lapsed();
    this.#settling.away();
  }

  /**
   * The bus is back. What was under way when it went is found by a sweep before anything is asked for again;
   * after a restart all that was written before may come again, and is flagged.
   */
  back(restarted: boolean): void {
    if (restarted) {
      this.#redelivery.busRestarted();
      this.#restarted = true;
      this.#getter.lapsed();
    }
    this.#settling.back();
    void this.#recover(++this.#recovery);
  }

  /**
   * Another server of the cluster leads the cursor. It knows every delivery that a client has seen, but neither what was
   * settled at the end nor what was asked for: a sweep and a new ask.
   */
  moved(): void {
    this.#settling.moved();
    void this.#recover(++this.#recovery);
  }

  /** The queue is gone: tells every subscriber, forgets what is held, stops. */
  gone(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#dealing.end();
    void this.#pulling.end();
    void this.#turns.run(() => this.#getter.close());
    this.#desk.bus.forget(this.name);
    this.#held.forget();
    this.#settling.drop();
    for (const subscription of this.#detach()) subscription.subscriber.cancelled();
  }

  /** A graceful stop: nothing more is delivered, and what was pulled or is still held goes back. */
  async close(): Promise<void> {
    if (this.#gone) return;
    this.#detach();
    this.#dealing.sieve.end();
    await this.#pulling.end();
    await this.#turns.run(() => this.#getter.close());
    for (const held of this.#held.ascending()) held.settle("requeue");
    this.#gone = true;
    this.#dealing.end();
    this.#desk.bus.forget(this.name);
    this.#held.forget();
    // Without the bus it is the sweep of whoever comes next that puts them back.
    if (this.#desk.bus.present) await this.#settling.settled();
  }

  async #recover(recovery: number): Promise<void> {
    while (recovery === this.#recovery && !this.#gone) {
      try {
        const written = await this.#options.sweep(this.name);
        if (recovery !== this.#recovery) return;
        if (this.#restarted && written > 0) {
          this.#redelivery.suspect(written);
          await this.#options.doubt(this.name, written);
          if (recovery !== this.#recovery) return;
        }
        this.#restarted = false;
        break;
      } catch {
        // The bus is not what it was yet, or is gone again: then `away` is called, and this ends.
        await sleep(RECOVERY_PAUSE, undefined, { ref: false });
      }
    }
    if (recovery === this.#recovery && this.#options.holdsLease()) this.#pulling.back();
  }

  /** Ends every subscription, and returns them. */
  #detach(): LocalSubscription[] {
    const all = [...this.#dealing.subscriptions];
    for (const subscription of all) {
      subscription.leave();
      this.#dealing.subscriptions.remove(subscription);
    }
    return all;
  }

  #cancel(subscription: LocalSubscription): void {
    subscription.leave();
    this.#dealing.subscriptions.remove(subscription);
    this.#pulling.takersChanged();
  }
}
