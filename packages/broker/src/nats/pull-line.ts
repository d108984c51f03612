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

/** A lost or refused request is reported no sooner, so that nobody asks in a tight loop. */
const LOST_DELAY_MS = 250;
const GROWTH = 8;

export class JetStreamLine implements PullLine, AskOwner, BudgetWaiter {
  readonly #context: PullContext;
  readonly #queue: string;
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
  #appetite = 0;
  /** A share this wide did not hold the next message. */
  #narrow = 0;
  #needLargest: boolean = false;
  readonly #largeWaiter: BudgetWaiter = { appetite: 0, granted: (octets) => this.#grantedLargest(octets) };

  constructor(context: PullContext, queue: string, sink: PullSink, closed: (line: JetStreamLine) => void) {
    this.#context = context;
    this.#queue = queue;
    this.#subject = context.nextSubject(queue);
    this.#sink = sink;
    this.#closed = closed;
  }

  get appetite(): number {
    return this.#appetite;
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
    const asks = this.#asks;
    this.#asks = [];
    await Promise.all(asks.map((ask) => ask.drain()));
  }

  arrived(message: Incoming): void {
    this.#sink.message(message);
    if (this.#want > 0) this.#pump();
  }

  ended(ask: Ask, end: AskEnd): void {
    const missing = ask.outstanding;
    ask.outstanding = 0;
    if (ask.came > 0) this.#narrow = 0;
    if (ask.large) this.#needLargest = false;
    if (this.#dead) return;
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
        this.#sink.ended(missing, "gone");
        break;
      default:
        if (ask.wait) this.#appetite = 0;
        this.#sink.ended(missing, end === "busy" ? "expired" : end);
    }
    this.#pump();
  }

  /** The connection is gone, and with it whatever was asked on it. */
  down(): void {
    let missing = 0;
    for (const ask of this.#asks) {
      missing += ask.outstanding;
      ask.drop();
    }
    this.#asks = [];
    this.#needLargest = false;
    this.#narrow = 0;
    if (missing > 0) this.#sink.ended(missing, "lost");
  }

  up(): void {
    this.#pump();
  }

  /** Once a second: gives up what the bus forgot. A fresh inbox follows, so a late answer is not miscounted. */
  overdue(now: number): void {
    for (const ask of this.#asks) {
      if (!ask.overdue(now)) continue;
      this.#context.log.debug({}, `a pull on ${this.#queue} was forgotten by the bus`);
      const missing = ask.outstanding;
      this.#asks = this.#asks.filter((other) => other !== ask);
      if (ask.large) this.#needLargest = false;
      void ask.drain();
      this.#report(missing, "lost");
      this.#pump();
    }
  }

  granted(octets: number): boolean {
    this.#awaiting = false;
    if (this.#dead || !this.#context.link.up || this.#needLargest) return false;
    if (octets <= this.#narrow) {
      this.#needLargest = true;
      this.#pump();
      return false;
    }
    const wait = this.#wantNow === 0;
    const count = wait ? this.#want : this.#wantNow;
    if (count === 0 || !this.#due()) return false;
    if (wait) this.#want = 0;
    else this.#wantNow = 0;
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
      if (this.#needLargest) {
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
    return active === 0 || (active === 1 && (this.#wantNow > 0 || this.#want >= owed));
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
    const share = Math.max(ask.width, 1_024);
    this.#appetite = Math.min(MOST_SHARE, share * (ask.came > 0 ? 2 : GROWTH));
    if (ask.came === 0) this.#narrow = Math.max(this.#narrow, share);
  }

  async #absent(missing: number): Promise<void> {
    const gone = await this.#context.gone(this.#queue).catch(() => false);
    if (this.#dead) return;
    if (gone) this.#sink.ended(missing, "gone");
    else this.#report(missing, "lost");
  }

  #report(missing: number, why: "lost"): void {
    setTimeout(() => {
      if (!this.#dead) this.#sink.ended(missing, why);
    }, LOST_DELAY_MS);
  }
}
