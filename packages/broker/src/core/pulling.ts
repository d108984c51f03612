/**
 * The one shared pull of a queue in this process.
 *
 * States:
 *   idle         nothing is asked for
 *   pulling      a line is open and something is asked for
 *   taking back  the line is being drained; what still arrives is dealt or handed back
 *   paused       a verb (get, purge, sweep) or the bus's absence keeps it from asking
 *   gone         the queue is gone, or closed
 *
 * Responsibilities: asks for exactly what the local consumers have credit for, and lets the next line open only after
 * what was handed back is back (design §6). Used by: queue. Separate because none of it is about messages.
 */
import { AskPolicy } from "./ask-policy.ts";
import type { Bus, Incoming, PullLine, PullSink } from "./bus.ts";

export type PullingState = "idle" | "pulling" | "taking back" | "paused" | "gone";

/** Who pulls. */
export interface Puller {
  /** Deliveries that the local consumers can take now. */
  readonly room: number;
  /** A message has come; it is dealt, acknowledged or refused ({@link Pull.refuse}). */
  arrived(message: Incoming, pull: Pull): void;
  /** Resolves when everything that arrived has been dealt, acknowledged or refused. */
  dealt(): Promise<void>;
  /** A line is about to be taken back: nothing is put back before {@link recalled}. */
  recalling(): void;
  /** The line is dead and everything that arrived was dealt or refused: resolves when what was put back is back. */
  recalled(pull: Pull): Promise<void>;
  /** The bus lost what was asked for without going away (it changed its leader): what was under way is nobody's. */
  lost(): void;
}

/** When to try again after a line was lost and nobody said that the bus is away: the bus itself waits before it says so. */
const AFTER_LOSS = 50;
/** And after the bus said that there is no such cursor: the topology says so too, soon, unless it is made again. */
const AFTER_GONE = 5_000;

/** One generation: a line, and what was asked for on it. */
export class Pull implements PullSink {
  readonly #pulling: Pulling;
  readonly line: PullLine;
  /** Asked for and not come. */
  outstanding = 0;
  /** Since when something was waiting at the bus without a break, milliseconds since the epoch. */
  waitingSince = 0;
  /** What nobody could take, in the order in which it came. To keep that order, so is all that comes after the first. */
  refused: Incoming[] = [];
  /** Refuse all, whoever has credit. */
  refusesAll: boolean = false;
  /** The bus forgot what was asked for. */
  lost: boolean = false;
  /** The lease lapsed, or the bus went: what was asked for before may long be another's, whenever it comes. */
  isVoid: boolean = false;

  constructor(pulling: Pulling, open: (sink: PullSink) => PullLine) {
    this.#pulling = pulling;
    this.line = open(this);
  }

  ask(count: number): void {
    if (this.outstanding === 0) this.waitingSince = Date.now();
    this.outstanding += count;
    this.line.ask(count, true);
  }

  /** Nobody can take this one: nothing is asked for until it is back in the queue. */
  refuse(message: Incoming): void {
    this.refused.push(message);
    if (this.refused.length === 1) this.#pulling.refused(this);
  }

  /** One that came takes no credit after all: another may be asked for. */
  passed(): void {
    this.#pulling.wanted();
  }

  message(message: Incoming): void {
    this.outstanding--;
    this.#pulling.arrived(message, this);
  }

  ended(missing: number, why: "empty" | "expired" | "gone" | "lost"): void {
    this.outstanding -= missing;
    this.#pulling.ended(this, why);
  }
}

export class Pulling {
  readonly #queue: string;
  readonly #bus: Bus;
  readonly #puller: Puller;
  readonly #policy: AskPolicy = new AskPolicy();
  readonly #pump: () => void;
  #pull: Pull | undefined;
  #takingBack: Promise<void> | undefined;
  #pauses = 0;
  #away: boolean = false;
  #gone: boolean = false;
  #pumping: boolean = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(queue: string, bus: Bus, puller: Puller) {
    this.#queue = queue;
    this.#bus = bus;
    this.#puller = puller;
    this.#pump = () => {
      this.#pumping = false;
      this.#ask();
    };
  }

  get state(): PullingState {
    if (this.#gone) return "gone";
    if (this.#takingBack !== undefined) return "taking back";
    if (this.#pauses > 0 || this.#away) return "paused";
    return this.#pull !== undefined && this.#pull.outstanding > 0 ? "pulling" : "idle";
  }

  /** There may be room: asks before this turn ends, once however often it was said. */
  wanted(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    queueMicrotask(this.#pump);
  }

  /** Who takes has changed: asks anew, and takes back what nobody has credit for any more. */
  takersChanged(): void {
    this.#policy.reset();
    const pull = this.#pull;
    if (pull !== undefined && pull.outstanding > this.#puller.room) this.#begin(pull);
    this.wanted();
  }

  /** Resolves when no line is being taken back. */
  async calm(): Promise<void> {
    while (this.#takingBack !== undefined) await this.#takingBack;
  }

  /** Takes the line back and asks for nothing until {@link resume}. Resolves when nothing can arrive any more. */
  async pause(): Promise<void> {
    this.#pauses++;
    if (this.#pull !== undefined) this.#begin(this.#pull);
    await this.calm();
  }

  resume(): void {
    this.#pauses--;
    this.wanted();
  }

  /** The bus is away: an ask that was on its way reaches it before anybody knows what it forgot meanwhile. */
  away(): void {
    this.#away = true;
    if (this.#pull !== undefined) this.#pull.isVoid = true;
  }

  /** The lease lapsed: nothing is asked for until {@link back}, and what still comes is nobody's. */
  lapsed(): void {
    this.#away = true;
    if (this.#pull === undefined) return;
    this.#pull.isVoid = true;
    this.#begin(this.#pull);
  }

  back(): void {
    this.#away = false;
    if (this.#pull?.lost) this.#begin(this.#pull);
    this.wanted();
  }

  /** For good. Resolves when nothing can arrive any more. */
  async end(): Promise<void> {
    this.#gone = true;
    clearTimeout(this.#retry);
    if (this.#pull !== undefined) this.#begin(this.#pull);
    await this.calm();
  }

  /** Of {@link Pull} only. */
  arrived(message: Incoming, pull: Pull): void {
    this.#puller.arrived(message, pull);
    this.wanted();
  }

  /** Of {@link Pull} only. */
  refused(pull: Pull): void {
    if (pull === this.#pull) this.#begin(pull);
  }

  /** Of {@link Pull} only. */
  ended(pull: Pull, why: "empty" | "expired" | "gone" | "lost"): void {
    if (why === "expired" || why === "empty") {
      this.wanted();
      return;
    }
    pull.lost = true;
    if (this.#gone || this.#retry !== undefined) return;
    this.#retry = setTimeout(
      () => {
        this.#retry = undefined;
        if (!this.#pull?.lost || this.#away) return;
        if (why === "lost") this.#puller.lost();
        else this.#begin(this.#pull);
      },
      why === "gone" ? AFTER_GONE : AFTER_LOSS,
    );
    this.#retry.unref();
  }

  #ask(): void {
    if (this.#takingBack !== undefined || this.#pauses > 0 || this.#away || this.#gone || this.#pull?.lost) return;
    const more = this.#policy.more(this.#puller.room, this.#pull?.outstanding ?? 0);
    if (more === 0) return;
    this.#pull ??= new Pull(this, (sink) => this.#bus.openPull(this.#queue, sink));
    this.#pull.ask(more);
  }

  #begin(pull: Pull): void {
    if (this.#takingBack !== undefined) return;
    this.#takingBack = this.#takeBack(pull).finally(() => {
      this.#takingBack = undefined;
      this.wanted();
    });
  }

  async #takeBack(pull: Pull): Promise<void> {
    this.#puller.recalling();
    // A lost line, or a bus that is away, has nothing to give: the sweep finds what was under way.
    await pull.line.takeBack().catch(() => undefined);
    this.#pull = undefined;
    await this.#puller.dealt();
    await this.#puller.recalled(pull).catch(() => undefined);
  }
}
