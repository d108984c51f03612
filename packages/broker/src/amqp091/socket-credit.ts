/**
 * The credit of a socket: what bounds consumers that nothing else bounds (design §6).
 *
 * Responsibilities: a window of deliveries that is granted again as they leave, and not while the socket's buffer is
 * above its mark; so a slow reader costs bounded memory whatever its prefetch.
 * Used by: outbox, and by every consumer of the connection as one of its credits. Separate because it is pure.
 */
import { Credit } from "../core/credit.ts";

/** Deliveries of a connection that may be under way from the bus. */
const WINDOW = 1024;

export class SocketCredit {
  readonly credit: Credit = new Credit(WINDOW);
  readonly #mark: number;
  /** Delivered and not granted again. */
  #owed = 0;
  /** Credit taken away while the socket is full. */
  #parked = 0;
  #full: boolean = false;

  /** @param mark octets of the buffer above which nothing is granted. */
  constructor(mark: number) {
    this.#mark = mark;
  }

  get full(): boolean {
    return this.#full;
  }

  /** One delivery was written; so many octets wait now. */
  delivered(waiting: number): void {
    this.#owed++;
    if (!this.#full && waiting > this.#mark) this.#shut();
  }

  /** Octets left, or the buffer drained: so many wait now. */
  moved(waiting: number): void {
    if (waiting > this.#mark) {
      if (!this.#full) this.#shut();
      return;
    }
    if (!this.#full && this.#owed < WINDOW / 2) return;
    this.#full = false;
    const granted = this.#owed + this.#parked;
    this.#owed = 0;
    this.#parked = 0;
    this.credit.grant(granted);
  }

  #shut(): void {
    this.#full = true;
    this.#parked = this.credit.left;
    if (this.#parked !== 0) this.credit.grant(-this.#parked);
  }
}
