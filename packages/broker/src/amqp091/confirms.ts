/**
 * The ledger of a channel's publishes: each is numbered, and what became of it is told in that order.
 *
 * Responsibilities: confirms go out each once, in order, one ack a message (HIP §4.1); commands that must come after the
 * channel's publishes can wait until all are known (design §5).
 * Used by: channel, publishing. Separate because it is pure, and its law is tested alone. It counts outside of confirm
 * mode too; there nobody is told.
 */
import type { PublishOutcome, PublishSink } from "../core/bus.ts";

const PENDING = 0;
const ACK = 1;
const NACK = 2;
const LEAST = 64;
/** A channel that never publishes needs no room. */
const NO_STATES: Uint8Array = new Uint8Array(0);

export interface ConfirmListener {
  /** The confirm of that delivery tag. */
  confirmed(tag: number, stored: boolean): void;
  /** A publish outside of confirm mode was not stored: its client cannot be told. */
  lost(outcome: PublishOutcome): void;
  /** The bus does not permit this login to publish to that subject. Comes after the confirm. */
  denied(subject: string): void;
}

export class Confirms implements PublishSink {
  readonly #listener: ConfirmListener;
  /** States of the publishes #base … #next − 1, by number & mask. */
  #states: Uint8Array = NO_STATES;
  #base = 1;
  #next = 1;
  /** The number of the first publish in confirm mode: its delivery tag is 1. */
  #from = Number.POSITIVE_INFINITY;
  #waiting: { readonly before: number; readonly resolve: () => void }[] = [];

  constructor(listener: ConfirmListener) {
    this.#listener = listener;
  }

  /** The channel confirms what is published from now on. Once is enough; again changes nothing. */
  select(): void {
    if (this.#from === Number.POSITIVE_INFINITY) this.#from = this.#next;
  }

  get selected(): boolean {
    return this.#from !== Number.POSITIVE_INFINITY;
  }

  /** Publishes whose outcome is not known. */
  get outstanding(): number {
    return this.#next - this.#base;
  }

  /** The number of the next publish; it is settled by {@link published} or {@link returned}. */
  open(): number {
    const length = this.#states.length;
    if (this.#next - this.#base === length) this.#grow();
    this.#states[this.#next & (this.#states.length - 1)] = PENDING;
    return this.#next++;
  }

  /** PublishSink: the bus answered. */
  published(number: number, outcome: PublishOutcome, subject = ""): void {
    if (number < this.#base) return; // given up before
    if (outcome === "denied") {
      this.#know(number, NACK);
      this.#listener.denied(subject);
      return;
    }
    if (outcome !== "stored" && number < this.#from) this.#listener.lost(outcome);
    this.#know(number, outcome === "stored" ? ACK : NACK);
  }

  /** It was returned to its publisher, which is no failure to publish (HIP §4.1). */
  returned(number: number): void {
    this.#know(number, ACK);
  }

  /** Everything that is not known is answered as not stored; what the bus says later is ignored. */
  abandon(): void {
    for (let number = this.#base; number < this.#next; number++) {
      const at = number & (this.#states.length - 1);
      if (this.#states[at] === PENDING) this.#states[at] = NACK;
    }
    this.#advance();
  }

  /** Resolves when every publish so far is known; undefined where that is so now. */
  settled(): Promise<void> | undefined {
    if (this.#base === this.#next) return undefined;
    const before = this.#next;
    return new Promise((resolve) => this.#waiting.push({ before, resolve }));
  }

  #know(number: number, state: number): void {
    this.#states[number & (this.#states.length - 1)] = state;
    if (number === this.#base) this.#advance();
  }

  #advance(): void {
    const mask = this.#states.length - 1;
    while (this.#base < this.#next) {
      const state = this.#states[this.#base & mask];
      if (state === PENDING) break;
      const tag = this.#base++ - this.#from + 1;
      if (tag > 0) this.#listener.confirmed(tag, state === ACK);
    }
    while (this.#waiting.length > 0 && (this.#waiting[0]?.before ?? 0) <= this.#base) this.#waiting.shift()?.resolve();
  }

  #grow(): void {
    const before = this.#states;
    const grown = new Uint8Array(Math.max(before.length * 2, LEAST));
    for (let number = this.#base; number < this.#next; number++) {
      grown[number & (grown.length - 1)] = before[number & (before.length - 1)] as number;
    }
    this.#states = grown;
  }
}
