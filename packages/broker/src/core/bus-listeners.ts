/**
 * Several listeners of one bus: each hears what happens, and one that comes later hears first what stands.
 *
 * Used by: open (the bus's one listener), auth/tenants (a broker a tenant). Separate because the bus knows one listener,
 * and tenants come and go.
 */
import type { BusListener } from "./bus.ts";

export class BusListeners implements BusListener {
  readonly #listeners: Set<BusListener> = new Set<BusListener>();
  #isAway: boolean = false;
  #isFull: boolean = false;
  #isStalled: boolean = false;

  join(listener: BusListener): void {
    this.#listeners.add(listener);
    if (this.#isAway) listener.away();
    if (this.#isFull) listener.full(true);
    if (this.#isStalled) listener.stalled?.(true);
  }

  leave(listener: BusListener): void {
    this.#listeners.delete(listener);
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

  stalled(stalled: boolean): void {
    this.#isStalled = stalled;
    for (const listener of this.#listeners) listener.stalled?.(stalled);
  }
}
