/**
 * Asks that take what is ready and do not wait: a line of its own beside the shared pull.
 *
 * Responsibilities: a batch of messages as one promise. Used by: get, purge, drain (none of them is the hot path).
 * Separate because all three need it.
 */
import type { Bus, Incoming, PullLine, PullSink } from "./bus.ts";
import type { Answerable } from "./settling.ts";

/** What an ask brought. `why` is absent when everything asked for came. */
export interface Batch {
  readonly messages: readonly Incoming[];
  readonly why: "empty" | "expired" | "gone" | "lost" | undefined;
}

export class NoWaitLine implements PullSink {
  readonly #putBack: (what: Answerable) => void;
  readonly #line: PullLine;
  #messages: Incoming[] = [];
  #missing = 0;
  #why: Batch["why"];
  #answer: ((batch: Batch) => void) | undefined;

  /** `putBack` gets what comes when nobody asks: it must not wait out the ack wait. */
  constructor(bus: Bus, queue: string, putBack: (what: Answerable) => void = (what) => bus.settle(what.token, "nak")) {
    this.#putBack = putBack;
    this.#line = bus.openPull(queue, this);
  }

  /** One ask at a time. */
  ask(count: number): Promise<Batch> {
    this.#missing = count;
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#line.ask(count, false);
    });
  }

  close(): Promise<void> {
    return this.#line.takeBack();
  }

  message(message: Incoming): void {
    if (this.#answer === undefined) {
      this.#putBack(message);
      return;
    }
    this.#messages.push(message);
    this.#count(1);
  }

  ended(missing: number, why: "empty" | "expired" | "gone" | "lost"): void {
    this.#why = why;
    this.#count(missing);
  }

  #count(answered: number): void {
    this.#missing -= answered;
    const answer = this.#answer;
    if (this.#missing > 0 || answer === undefined) return;
    const batch = { messages: this.#messages, why: this.#why };
    this.#messages = [];
    this.#why = undefined;
    this.#answer = undefined;
    answer(batch);
  }
}
