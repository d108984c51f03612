/**
 * The credit of a socket: what bounds consumers that nothing else bounds (design §6).
 *
 * Responsibilities: a window of deliveries that is granted again as they leave; nothing is asked for while the socket's
 * buffer is above its mark, and nothing is dealt to it above a multiple of that. So a slow reader costs bounded memory
 * whatever its prefetch, and one that merely pauses takes what was under way: handing that back would have it come again.
 * Used by: outbox, and by every consumer of the connection as one of its credits. Separate because it is pure.
 */
import { Credit } from "../core/credit.ts";

/** Deliveries of a connection that may be under way from the bus. */
const WINDOW = 1024;
/** So many times the mark: what comes then is handed back. */
const OVERFULL = 16;

export class SocketCredit {
  readonly credit: Credit = new Credit(WINDOW);
  readonly #mark: number;
  /** Delivered and not granted again. */
  #owed = 0;
  /** Credit taken away while the socket is overfull. */
  #parked = 0;
  #full: boolean = false;

  /** @param mark octets of the buffer above which nothing is asked for. */
  constructor(mark: number) {
    this.#mark = mark;
  }

  get full(): boolean {
    return this.#full;
  }

  /** One delivery was written; so many octets wait now. */
  delivered(waiting: number): void {
    this.#owed++;
    if (waiting > this.#mark) this.#shut(waiting);
  }

  /** Octets left, or the buffer drained: so many wait now. */
  moved(waiting: number): void {
    if (waiting > this.#mark) {
      this.#shut(waiting);
      return;
    }
    if (!this.#full && this.#owed < WINDOW / 2) return;
    const granted = this.#owed + this.#parked;
    this.#owed = 0;
    this.#parked = 0;
    this.#full = false;
    this.credit.resume(granted);
  }

  #shut(waiting: number): void {
    if (!this.#full) {
      this.#full = true;
      this.credit.pause();
    }
    const { left } = this.credit;
    if (waiting <= this.#mark * OVERFULL || left === 0) return;
    this.#parked += left;
    this.credit.grant(-left);
  }
}
