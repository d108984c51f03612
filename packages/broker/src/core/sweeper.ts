/**
 * Sweeping over the fleet (design §6, SWEEP).
 *
 * Responsibilities: queue by queue, every live replica pauses, says what it holds, and what nobody holds is put back.
 * Used by: the leader, after a replica ended, the bus restarted, or another leader went. Separate because only the leader
 * may: two sweeps at once, or one beside a replica that still pulls, would put back what is on its way to a client.
 */
import type { Queue } from "@amqp/topology";
import { type Core, readyQueue } from "./context.ts";
import type { Holding } from "./fleet.ts";
import { ownCursors } from "./namespace.ts";

/** How many queues are swept at once. */
const AT_ONCE = 8;

export class Sweeper {
  readonly #core: Core;
  /** Queue → the sweep that waits for its turn, and the one that runs. */
  readonly #waiting: Map<string, Promise<void>> = new Map<string, Promise<void>>();
  readonly #running: Map<string, Promise<void>> = new Map<string, Promise<void>>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** Sweeps a queue once more from the start, after any sweep of it that runs; asked for by several, it runs once. */
  sweep(name: string): Promise<void> {
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) return waiting;
    const running = this.#running.get(name) ?? Promise.resolve();
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

  async #sweep(name: string): Promise<void> {
    const queue = await readyQueue(this.#core, name);
    if (queue === undefined) return;
    const { fleet } = this.#core;
    if (fleet.others.length === 0) return this.#cursor(queue).sweep(new Set());
    try {
      const { answers } = await fleet.everyone<Holding>("pause", { queue: name });
      const held = new Set<number>();
      for (const answer of answers.values()) for (const sequence of answer.held) held.add(sequence);
      this.#core.leadership.assert();
      await this.#cursor(queue).sweep(held);
    } finally {
      void fleet.everyone("resume", { queue: name }).catch(() => undefined);
    }
  }

  #cursor(queue: Queue): ReturnType<Core["cursors"]["of"]> {
    return this.#core.cursors.of(queue);
  }
}
