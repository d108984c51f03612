/**
 * How the settlements of one queue reach the bus.
 *
 * Responsibilities: naks in ascending sequence, since the bus redelivers in the order of the naks (design §6), and none
 * while a pull is being taken back, which would get some of them again and put them behind the rest. Nothing is settled
 * without the lease: what is settled then, or while the bus is away, is owed until both are there again, or until it is
 * known that another replica's sweep has put it back (then it is void). What may have been lost on its way is said again.
 * Used by: dealing, queue and its verbs. Separate because order and timing of settlements are one rule for all of them.
 */
import { Acknowledged } from "./acknowledged.ts";
import type { Bus, Settlement } from "./bus.ts";

/** What can be answered to the bus: a message as it came, or as it is held. */
export interface Answerable {
  readonly sequence: number;
  readonly token: string;
}

/** How often it is asked whether all was processed before that is taken for true. */
const PROOFS = 5;

export class Settling {
  readonly #queue: string;
  readonly #bus: Bus;
  readonly #holdsLease: () => boolean;
  readonly #flush: () => void;
  /** Naks of this turn, or since {@link defer}. */
  #naks: Answerable[] = [];
  #deferred: boolean = false;
  /** Settled while the bus was away, or without the lease. */
  #owed: { readonly what: Answerable; readonly how: Settlement }[] = [];
  #away: boolean = false;
  readonly #acknowledged: Acknowledged = new Acknowledged();
  /** Rises when another server leads the cursor. */
  #era = 0;
  /** Rises with all that was sent, and with all that may have undone it; how far it is proven. */
  #sent = 0;
  #provenTo = 0;

  constructor(queue: string, bus: Bus, holdsLease: () => boolean) {
    this.#queue = queue;
    this.#bus = bus;
    this.#holdsLease = holdsLease;
    this.#flush = () => this.#flushNaks();
  }

  /** Takes it out of the queue. */
  finish(what: Answerable, how: "ack" | "term" = "ack"): void {
    if (this.#away || !this.#holdsLease()) {
      this.#owed.push({ what, how });
      return;
    }
    this.#sent++;
    this.#bus.settle(what.token, how);
    this.#acknowledged.add(what.sequence);
  }

  /** Puts it back. The naks of one turn go out ascending, in whatever order they were asked for. */
  putBack(what: Answerable): void {
    if (this.#naks.length === 0 && !this.#deferred) queueMicrotask(this.#flush);
    this.#naks.push(what);
  }

  /** How many wait to be put back. */
  get owedNaks(): number {
    return this.#naks.length;
  }

  /** Keeps the naks back until {@link release}. */
  defer(): void {
    this.#deferred = true;
  }

  /** Lets the deferred naks go; resolves when the bus has processed them. */
  async release(): Promise<void> {
    this.#deferred = false;
    if (this.#naks.length === 0) return;
    this.#flushNaks();
    if (!this.#away) await this.#proven();
  }

  /** Resolves when the bus has processed everything that was settled until now, but for what is deferred. */
  settled(): Promise<void> {
    this.#flushNaks();
    return this.#proven();
  }

  /** Another server leads the cursor: what the last one was told at the end is not known to this one. */
  moved(): void {
    this.#era++;
    this.#sent++;
  }

  /**
   * Says the latest acknowledgements above `floor` again: those that the bus knows of change nothing. Not so with what was
   * put back, which another client may hold by now: a sweep finds it.
   */
  sayAgain(floor: number): void {
    if (this.#away || !this.#holdsLease()) return;
    this.#sent++;
    for (const sequence of this.#acknowledged.above(floor)) this.#bus.ackAbandoned(this.#queue, sequence, 1);
  }

  away(): void {
    this.#away = true;
  }

  /** The tokens are good still: a bus that restarted knows what it had delivered. */
  back(): void {
    this.#away = false;
    this.#sent++;
    this.regained();
  }

  /** The lease is held (again), and nobody swept meanwhile: what is owed is paid, unless the bus is away. */
  regained(): void {
    if (this.#away || !this.#holdsLease()) return;
    const owed = this.#owed;
    this.#owed = [];
    for (const { what, how } of owed) {
      if (how === "nak") this.putBack(what);
      else this.finish(what, how === "term" ? "term" : "ack");
    }
    this.#flushNaks();
  }

  /** The queue is gone, or a sweep has put back what was not settled: nothing more is to be said, nor said again. */
  drop(): void {
    this.#naks = [];
    this.#owed = [];
    this.#acknowledged.forget();
  }

  /** Asks the bus nothing where nothing was sent since it last proved it. */
  async #proven(): Promise<void> {
    for (let proof = 1; this.#provenTo < this.#sent; proof++) {
      const era = this.#era;
      const sent = this.#sent;
      const isPrompt = await this.#bus.settled(this.#queue);
      if ((isPrompt && era === this.#era) || proof === PROOFS) {
        this.#provenTo = Math.max(this.#provenTo, sent);
        return;
      }
      // Nobody led the cursor for a while, and what was sent then is lost.
      this.sayAgain(0);
    }
  }

  #flushNaks(): void {
    if (this.#naks.length === 0 || this.#deferred) return;
    const naks = this.#naks;
    this.#naks = [];
    naks.sort((a, b) => a.sequence - b.sequence);
    this.#sent++;
    const mayNot = this.#away || !this.#holdsLease();
    for (const what of naks) {
      if (mayNot) this.#owed.push({ what, how: "nak" });
      else this.#bus.settle(what.token, "nak");
    }
  }
}
