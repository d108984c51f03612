/**
 * One generation of pulls on a queue.
 *
 * Responsibilities: turns `ask(count)` into few requests, with octets from the budget; asks again where a share was
 * too narrow, for one message out of the reserve where it is larger than any share; reports what will not come.
 * Used by: core through {@link PullLine}; made by pulls. Separate because it is where credit becomes requests.
 *
 * Requests: all asks of one turn are one. While one request is out, the next goes when at least as much is wanted as
 * is still owed, so that a busy queue has two in turn and a dribble of credit makes no request a message.
 */
import type { Incoming, PullLine, PullSink } from "../core/bus.ts";
import { Ask, type AskEnd, type AskOwner } from "./ask.ts";
import { type BudgetWaiter, MOST_SHARE } from "./budget.ts";
import type { PullContext } from "./pulls.ts";
import type { Width } from "./width.ts";

/** A lost or refused request is reported no sooner, so that nobody asks in a tight loop. */
const LOST_DELAY_MS = 250;
const QUIET_MS = 25;
const FLOWING_MS = 500;

export class JetStreamLine implements PullLine, AskOwner, BudgetWaiter {
  readonly #context: PullContext;
  readonly queue: string;
  readonly #subject: string;
  readonly #sink: PullSink;
  readonly #closed: (line: JetStreamLine) => void;
  #asks: Ask[] = [];
  /** Asked of the line and not yet of the bus: with and without waiting. */
  #want = 0;
  #wantNow = 0;
  #dead: boolean = false;
  #pumping: boolean = false;
  /** Its turn in the budget is awaited. */
  #awaiting: boolean = false;
  #awaitingLarge: boolean = false;
  /** Nothing has come of late: an even share is enough. */
  #idle: boolean = true;
  /** The next message needs the reserve. */
  #needLargest: boolean = false;
  readonly #width: Width;
  #lastActivity = 0;
  readonly #largeWaiter: BudgetWaiter = { appetite: 0, granted: (octets) => this.#grantedLargest(octets) };

  constructor(context: PullContext, queue: string, sink: PullSink, closed: (line: JetStreamLine) => void) {
    this.#context = context;
    this.queue = queue;
    this.#subject = context.nextSubject(queue);
    this.#width = context.width(queue);
    this.#sink = sink;
    this.#closed = closed;
  }

  get appetite(): number {
    if (this.#width.above > 0) return Math.ceil(this.#width.octets);
    // Whole octets: the bus takes no fraction.
    return this.#idle ? 0 : Math.ceil((this.#want + this.#wantNow) * this.#width.octets);
  }

  ask(count: number, wait: boolean): void {
    if (this.#dead || count <= 0) return;
    if (wait) this.#want += count;
    else this.#wantNow += count;
    this.#pump();
  }

  async takeBack(): Promise<void> {
    if (!this.#dead) {
      this.#dead = true;
      this.#closed(this);
    }
    const until = performance.now() + FLOWING_MS;
    while (this.#flows() && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
    const asks = this.#asks;
    this.#asks = [];
    await Promise.all(asks.map((ask) => ask.drain()));
  }

  /**
   * While a request is being answered it is left to end: what the server was about to send when it hears of an
   * UNSUB it puts back itself, before everything this process hands back and counted as delivered (measured: up to
   * several hundred messages in 3 of 100 rounds). When nothing came for a moment, nothing is about to be sent.
   */
  #flows(): boolean {
    return performance.now() - this.#lastActivity < QUIET_MS && this.#asks.some((ask) => ask.active);
  }

  arrived(message: Incoming, octets: number): void {
    this.#idle = false;
    this.#lastActivity = performance.now();
    this.#width.saw(octets);
    this.#sink.message(message);
    if (this.#want > 0) this.#pump();
  }

  ended(ask: Ask, end: AskEnd): void {
    const missing = ask.outstanding;
    ask.outstanding = 0;
    if (ask.large) this.#needLargest = false;
    if (this.#dead) return;
    if (ask.large && ask.wait && (end === "empty" || end === "busy")) {
      // Somebody else took what was too large: wait as usual again.
      this.#idle = true;
      this.#width.gone();
      this.#want += missing;
      this.#pump();
      return;
    }
    switch (end) {
      case "done":
        break;
      case "narrow":
        this.#tooNarrow(ask, missing);
        break;
      case "absent":
        void this.#absent(missing);
        break;
      case "lost":
        this.#report(missing, "lost");
        break;
      case "gone":
        this.#context.forget(this.queue);
        this.#sink.ended(missing, "gone");
        break;
      default:
        if (ask.came === 0) this.#idle = true;
        this.#sink.ended(missing, end === "busy" ? "expired" : end);
    }
    this.#pump();
  }

  /** The connection is gone, and with it whatever was asked on it. */
  down(): void {
    const missing = this.#drop();
    if (missing > 0) this.#sink.ended(missing, "lost");
  }

  /** The cursor is gone: nothing comes of what was asked, nor of what still would be. */
  gone(): void {
    const missing = this.#drop() + this.#want + this.#wantNow;
    this.#want = 0;
    this.#wantNow = 0;
    if (missing > 0) this.#sink.ended(missing, "gone");
  }

  up(): void {
    this.#pump();
  }

  /** Once a second: gives up what the bus forgot. A fresh inbox follows, so a late answer is not miscounted. */
  overdue(now: number): void {
    for (const ask of this.#asks) {
      if (!ask.overdue(now)) continue;
      this.#context.log.debug({}, `a pull on ${this.queue} was forgotten by the bus`);
      const missing = ask.outstanding;
      this.#asks = this.#asks.filter((other) => other !== ask);
      if (ask.large) this.#needLargest = false;
      ask.abandon();
      // Where a native client subscribes to everything, the bus does not say that nobody takes such asks any more.
      void this.#absent(missing);
      this.#pump();
    }
  }

  granted(octets: number): boolean {
    this.#awaiting = false;
    if (this.#dead || !this.#context.link.up || this.#needLargest) return false;
    if (octets <= this.#width.above) {
      this.#needLargest = true;
      this.#pump();
      return false;
    }
    const wait = this.#wantNow === 0;
    const count = Math.min(wait ? this.#want : this.#wantNow, this.#width.fitting(octets));
    if (count === 0 || !this.#due()) return false;
    if (wait) this.#want -= count;
    else this.#wantNow -= count;
    this.#lastActivity = performance.now();
    this.#idleAsk().send(this.#subject, count, wait, octets, false);
    return true;
  }

  #grantedLargest(octets: number): boolean {
    this.#awaitingLarge = false;
    const wait = this.#wantNow === 0;
    if (this.#dead || !this.#context.link.up || !this.#needLargest) return false;
    if (this.#want + this.#wantNow === 0) {
      this.#needLargest = false;
      return false;
    }
    if (wait) this.#want--;
    else this.#wantNow--;
    this.#lastActivity = performance.now();
    this.#idleAsk().send(this.#subject, 1, wait, octets, true);
    return true;
  }

  /** At the end of this turn, so that what is asked bit by bit leaves as one request. */
  #pump(): void {
    if (this.#pumping || this.#dead) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      if (this.#dead || this.#want + this.#wantNow === 0 || !this.#context.link.up) return;
      if (this.#needLargest || (!this.#idle && this.#width.octets > MOST_SHARE)) {
        this.#needLargest = true;
        if (this.#awaitingLarge || this.#asks.some((ask) => ask.active && ask.large)) return;
        this.#awaitingLarge = true;
        this.#context.budget.takeLargest(this.#largeWaiter);
      } else if (!this.#awaiting && this.#due()) {
        this.#awaiting = true;
        this.#context.budget.take(this);
      }
    });
  }

  #due(): boolean {
    let owed = 0;
    let active = 0;
    for (const ask of this.#asks) {
      if (!ask.active) continue;
      active++;
      owed += ask.outstanding;
    }
    if (active !== 1) return active === 0;
    return this.#wantNow > 0 || (!this.#idle && this.#want >= owed);
  }

  /** Returns how much was owed. */
  #drop(): number {
    let missing = 0;
    for (const ask of this.#asks) {
      missing += ask.outstanding;
      ask.drop();
    }
    this.#asks = [];
    this.#needLargest = false;
    return missing;
  }

  #idleAsk(): Ask {
    for (const ask of this.#asks) if (!ask.active) return ask;
    const ask = new Ask(this.#context, this);
    this.#asks.push(ask);
    return ask;
  }

  #tooNarrow(ask: Ask, missing: number): void {
    if (ask.wait) this.#want += missing;
    else this.#wantNow += missing;
    if (ask.came === 0) this.#width.exceeded(ask.width);
  }

  async #absent(missing: number): Promise<void> {
    const gone = await this.#context.gone(this.queue).catch(() => false);
    if (this.#dead) return;
    if (gone) {
      this.#context.forget(this.queue);
      this.#sink.ended(missing, "gone");
    } else this.#report(missing, "lost");
  }

  #report(missing: number, why: "lost"): void {
    setTimeout(() => {
      if (!this.#dead) this.#sink.ended(missing, why);
    }, LOST_DELAY_MS);
  }
}
