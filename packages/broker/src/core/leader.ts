/**
 * What a replica does as the topology's leader.
 *
 * Responsibilities: putting the parts together that change the topology, taking over from an earlier leader, and seeing to
 * what a dead replica leaves behind. Used by: replica (one each). Separate because every replica has these parts and
 * only one at a time may use them: each write asks leadership in its turn.
 */
import { Bindings } from "./bindings.ts";
import type { Changes } from "./changes.ts";
import { Changing } from "./changing.ts";
import { Chores } from "./chores.ts";
import { Closing } from "./closing.ts";
import { Consumers, type Consuming } from "./consumers.ts";
import type { Core } from "./context.ts";
import { Exchanges } from "./exchanges.ts";
import { CursorFilters } from "./filters.ts";
import { Lifecycle } from "./lifecycle.ts";
import { Queues } from "./queues.ts";
import { reconcile } from "./reconcile.ts";
import { Sweeper } from "./sweeper.ts";

/** Milliseconds until what a dead replica left is seen to again. */
const AGAIN = 1000;

export class Leader {
  readonly exchanges: Exchanges;
  readonly changes: Changes;
  readonly #core: Core;
  readonly #filters: CursorFilters;
  readonly #lifecycle: Lifecycle;
  readonly #closing: Closing;
  readonly #chores: Chores;
  readonly #queues: Queues;
  readonly #consumers: Consumers = new Consumers();
  readonly #sweeper: Sweeper;

  constructor(core: Core) {
    this.#core = core;
    this.#filters = new CursorFilters(core.bus, core.leadership);
    this.#lifecycle = new Lifecycle(core, this.#filters);
    this.#closing = new Closing(core);
    this.#chores = new Chores(core, this.#filters, this.#lifecycle, this.#closing, (exchange) => {
      // Not awaited inside the queue's lane: an exchange's deletion waits for lanes of queues.
      void this.exchanges.bindingsWent(exchange).catch((error: unknown) => {
        core.log.error({ err: error, exchange }, "an auto-delete exchange without bindings could not be deleted");
      });
    });
    const seeTo = (queue: string): void => this.#chores.seeTo(queue);
    const bindings = new Bindings(core, this.#filters, this.#closing, seeTo);
    this.#sweeper = new Sweeper(core);
    this.exchanges = new Exchanges(core, bindings);
    this.#queues = new Queues(core, this.#lifecycle, this.exchanges, this.#consumers, seeTo);
    this.changes = new Changing(this.exchanges, this.#queues, bindings, this.#sweeper);
  }

  /** With the right to write and nobody else writing, before this replica leads. */
  async takeOver(starting: boolean, consuming: () => readonly Consuming[]): Promise<void> {
    const parts = {
      core: this.#core,
      filters: this.#filters,
      lifecycle: this.#lifecycle,
      closing: this.#closing,
      exchanges: this.exchanges,
      chores: this.#chores,
      consumers: this.#consumers,
      consuming,
    };
    await this.#core.fleet.gathered();
    await reconcile(parts, starting);
    await this.#queues.deleteUnconsumed();
    await this.#doubtAll();
    await this.#sweeper.sweepAll();
  }

  /**
   * A binding is being undone. It may be by an earlier leader, whose last write the bus had kept back until now: then
   * nobody else comes to its end.
   */
  seesClosing(queue: string): void {
    if (this.#core.leadership.mayWrite) this.#chores.seeToLater(queue);
  }

  /** Who takes over from now on finds the same in reconciling; who is at it may have been past it when this one ended. */
  async replicaGone(id: string): Promise<void> {
    const { fleet, leadership } = this.#core;
    if (!leadership.leading) {
      if (leadership.mayWrite) this.#goneAgain(id);
      return;
    }
    await fleet.gathered();
    // It is back under another id, and has what it had.
    if (fleet.owns(id)) return;
    this.#core.log.warn({ replica: id }, "a replica is gone; what its clients held is put back");
    try {
      await this.#doubtAll();
      await Promise.all([this.#queues.replicaGone(id), this.#sweeper.sweepAll()]);
    } catch (error) {
      this.#core.log.warn({ err: error, replica: id }, "could not put back all that a replica left; trying again");
      this.#goneAgain(id);
    }
  }

  #goneAgain(id: string): void {
    setTimeout(() => void this.replicaGone(id), AGAIN).unref();
  }

  /** A replica died with the bus: whatever is in the log may have been given to its clients. */
  async #doubtAll(): Promise<void> {
    const { fleet, topology, bus } = this.#core;
    if (!fleet.hasLostCounts) return;
    const upTo = await bus.lastSequence();
    await Promise.all([...topology.queues()].map(({ name }) => this.#queues.doubt(name, upTo)));
  }

  /** No chore begins any more; resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#chores.close();
    await this.#core.lanes.idle();
  }
}
