/**
 * Waiting for a cursor that has not heard of the log's latest messages.
 *
 * Responsibilities: whether what the log had when one first looked is still news to the cursor, and how long one waits
 * for it. Used by: count, get, purge. Separate because all three must not say "nothing" of a queue that was confirmed a
 * message, and none may wait for what is published meanwhile.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Bus } from "./bus.ts";
import { PATIENCE } from "./patience.ts";

/**
 * One server's cursor lags by milliseconds; a cluster's members do not apply what the dead leader alone knew to be
 * confirmed until there is another leader, so it is as long as every other wait for an election.
 */
const LONGEST = PATIENCE;
const LONGEST_PAUSE = 250;
/** A look that took longer was an election of the cursor's own, and its new leader has as long to hear of it again. */
const LONG_LOOK = 1_000;

export class Lag {
  readonly #bus: Bus;
  readonly #longest: number;
  /** The log's end that counts. */
  #until: number | undefined;
  #end = 0;
  #last = 0;
  #pause = 1;
  /** When it was last said that the cursor is behind. */
  #said = 0;

  /** `until`: the log's end that counts, where it is known already; else as it is when first asked. */
  constructor(bus: Bus, until?: number, longest: number = LONGEST) {
    this.#bus = bus;
    this.#until = until;
    this.#longest = longest;
  }

  /**
   * True, after a moment, where `holdsAny(until)` says that the log has a message, not above `until`, that the cursor has
   * not: look again. False where it has none, or where this has been so for longer than any cursor lags.
   */
  async isBehind(holdsAny: (until: number | undefined) => Promise<boolean>): Promise<boolean> {
    if (!(await holdsAny(this.#until))) return false;
    const now = performance.now();
    if (this.#end === 0) {
      this.#end = now + this.#longest;
      this.#last = this.#end + this.#longest;
    } else if (now - this.#said > LONG_LOOK) this.#end = Math.min(now + this.#longest, this.#last);
    this.#until ??= await this.#bus.lastSequence();
    if (now >= this.#end) return false;
    await sleep(this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
    this.#said = performance.now();
    return true;
  }
}
