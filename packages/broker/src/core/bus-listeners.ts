/**
 * Several listeners of one bus: each hears what happens, and one that comes later hears first what stands.
 *
 * Used by: ground (the bus's one listener), place (a broker's health). Separate because the bus knows one listener, and
 * tenants come and go.
 */
import type { BusListener } from "./bus.ts";

export class BusListeners implements BusListener {
  /** Each with what stands before its queues' names in cursor names. */
  readonly #joined: Map<BusListener, string> = new Map<BusListener, string>();
  #isAway: boolean = false;
  #isFull: boolean = false;
  #isStalled: boolean = false;

  /** `cursors`: what stands before this listener's queues in cursor names (a namespace's), or nothing. */
  join(listener: BusListener, cursors = ""): void {
    this.#joined.set(listener, cursors);
    if (this.#isAway) listener.away();
    if (this.#isFull) listener.full(true);
    if (this.#isStalled) listener.stalled?.(true);
  }

  leave(listener: BusListener): void {
    this.#joined.delete(listener);
  }

  get #listeners(): Iterable<BusListener> {
    return this.#joined.keys();
  }

  /** Told to whose cursor it is; to a flat one, those of every namespace are queues that it does not have. */
  moved(cursor: string): void {
    for (const [listener, cursors] of this.#joined)
      if (cursor.startsWith(cursors)) listener.moved?.(cursor.slice(cursors.length));
  }

  away(): void {
    this.#isAway = true;
    for (const listener of this.#listeners) listener.away();
  }

  back(restarted: boolean): void {
    this.#isAway = false;
    for (const listener of this.#listeners) listener.back(restarted);
  }

  full(full: boolean): void {
    this.#isFull = full;
    for (const listener of this.#listeners) listener.full(full);
  }

  room(): void {
    for (const listener of this.#listeners) listener.room();
  }

  stands(): boolean {
    for (const listener of this.#listeners) if (listener.stands?.() === false) return false;
    return true;
  }

  stalled(stalled: boolean): void {
    this.#isStalled = stalled;
    for (const listener of this.#listeners) listener.stalled?.(stalled);
  }
}
