/**
 * Sweeping over the fleet (design §6, SWEEP).
 *
 * Responsibilities: queue by queue, every live replica pauses, says what it holds, and what nobody holds is put back.
 * Used by: the leader, after a replica ended, the bus restarted, or another leader went. Separate because only the leader
 * may: two sweeps at once, or one beside a replica that still pulls, would put back what is on its way to a client.
 */
import { type Core, readyQueue } from "./context.ts";
import type { Holding } from "./fleet.ts";
import { ownCursors } from "./namespace.ts";

/** How many queues are swept at once. */
const AT_ONCE = 8;

export class Sweeper {
  readonly #core: Core;
  /** Queue → the sweep that waits for its turn, and the one that runs. */
  readonly #waiting: Map<string, Promise<number>> = new Map<string, Promise<number>>();
  readonly #running: Map<string, Promise<number>> = new Map<string, Promise<number>>();

  constructor(core: Core) {
    this.#core = core;
  }

  /**
   * Sweeps a queue once more from the start, after any sweep of it that runs; asked for by several, it runs once. Resolves
   * to the highest sequence that a client of any replica was given, a bound where one of them died and cannot say.
   */
  sweep(name: string): Promise<number> {
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) return waiting;
    const running: Promise<unknown> = this.#running.get(name) ?? Promise.resolve();
    const next = running
      .catch(() => undefined)
      .then(() => {
        this.#waiting.delete(name);
        const sweep = this.#sweep(name).finally(() => {
          if (this.#running.get(name) === sweep) this.#running.delete(name);
        });
        this.#running.set(name, sweep);
        return sweep;
      });
    this.#waiting.set(name, next);
    return next;
  }

  /** Every queue of which something was delivered and is not settled. */
  async sweepAll(): Promise<void> {
    const states = await ownCursors(this.#core.bus);
    const names = states.filter(({ ackPending }) => ackPending > 0).map(({ queue }) => queue);
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let name = names[next++]; name !== undefined; name = names[next++]) await this.sweep(name);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  /** Resolves when the sweep of that queue that runs is over: it knows nothing of whoever comes meanwhile. */
  async over(name: string): Promise<void> {
    await this.#running.get(name)?.catch(() => undefined);
  }

  async #sweep(name: string): Promise<number> {
    // A replica that this mirror has not seen yet may hold something too.
    await this.#core.topology.fence();
    const queue = await readyQueue(this.#core, name);
    if (queue === undefined) return 0;
    const { fleet, bus, leadership } = this.#core;
    const cursor = this.#core.cursors.of(queue);
    if (fleet.others.length === 0) {
      await cursor.sweep(new Set());
      return fleet.lostOne ? bus.lastSequence() : cursor.written;
    }
    try {
      const { answers } = await fleet.everyone<Holding>("pause", { queue: name });
      const held = new Set<number>();
      for (const answer of answers.values()) for (const sequence of answer.held) held.add(sequence);
      leadership.assert();
      await cursor.sweep(held);
      const written = [...answers.values()].map((answer) => answer.written ?? Number.NaN);
      if (fleet.lostOne || written.includes(Number.NaN)) return await bus.lastSequence();
      return Math.max(cursor.written, ...written);
    } finally {
      void fleet.everyone("resume", { queue: name }).catch(() => undefined);
    }
  }
}
