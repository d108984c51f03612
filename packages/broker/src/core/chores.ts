/**
 * Chores: what must be done some time after a client was answered.
 *
 * Responsibilities: narrowing cursors whose closed intervals hold nothing any more, and finishing what a silent bus
 * interrupted: deletions, and the undoing of bindings. Used by: leader (bindings and queues tell it). Done by the leader only.
 * Separate because narrowing at the wrong moment destroys queued messages (design §4, UNBIND): one file decides when.
 */
import type { Binding, Interval, Queue } from "@amqp/topology";
import { isFault, toFilters } from "@amqp/translator";
import type { CursorState } from "./bus.ts";
import type { Closing } from "./closing.ts";
import { type Core, queueLane, untilWritten } from "./context.ts";
import type { CursorFilters } from "./filters.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { anyAbove } from "./log-look.ts";
import { living } from "./open-intervals.ts";
import { DRAIN_ABOVE } from "./walk.ts";

/** Milliseconds until a queue is looked at again: at first, and at most. */
const FIRST = 250;
const LONGEST = 8000;

export class Chores {
  readonly #core: Core;
  readonly #filters: CursorFilters;
  readonly #lifecycle: Lifecycle;
  readonly #closing: Closing;
  /** Told of an exchange that lost a binding here. */
  readonly #unbound: (exchange: string) => void;
  readonly #timers: Map<string, NodeJS.Timeout> = new Map<string, NodeJS.Timeout>();
  #closed = false;

  constructor(
    core: Core,
    filters: CursorFilters,
    lifecycle: Lifecycle,
    closing: Closing,
    unbound: (exchange: string) => void,
  ) {
    this.#core = core;
    this.#filters = filters;
    this.#lifecycle = lifecycle;
    this.#closing = closing;
    this.#unbound = unbound;
  }

  /** A queue has a closed interval, or a deletion that is not finished: see to it, now and until it is done. */
  seeTo(queue: string): void {
    const timer = this.#timers.get(queue);
    if (timer !== undefined) clearTimeout(timer);
    this.#schedule(queue, 0, FIRST);
  }

  /** As {@link seeTo}, in a while, where that was not said: whoever is at it may come to its end first. */
  seeToLater(queue: string): void {
    if (!this.#timers.has(queue)) this.#schedule(queue, FIRST, FIRST);
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #schedule(queue: string, delay: number, next: number): void {
    if (this.#closed) return;
    const timer = setTimeout(() => {
      this.#timers.delete(queue);
      void this.#core.lanes
        .run(queueLane(queue), () => this.#do(queue))
        .catch((error: unknown) => {
          this.#core.log.warn({ err: error, queue }, "tidying a queue failed; it will be tried again");
          return false;
        })
        .then((done) => {
          if (!done && !this.#timers.has(queue)) this.#schedule(queue, next, Math.min(next * 2, LONGEST));
        });
    }, delay);
    timer.unref();
    this.#timers.set(queue, timer);
  }

  /** Resolves to whether nothing is left to do. */
  async #do(name: string): Promise<boolean> {
    // Who leads next finds in reconciling what is left to do.
    if (this.#closed || !this.#core.leadership.mayWrite) return true;
    const queue = this.#core.topology.queue(name);
    if (queue === undefined) return true;
    if (queue.state === "ready") {
      for (const exchange of await this.#closing.finish(queue)) this.#unbound(exchange);
      return this.#narrow(queue);
    }
    await this.#lifecycle.finishDeletion(queue, await this.#core.bus.cursorState(name));
    return true;
  }

  /**
   * Drops the closed intervals of which the queue holds nothing any more, then the filters that nothing needs.
   * The state is read here, in the lane, so after each `until` was written.
   */
  async #narrow(queue: Queue): Promise<boolean> {
    const { topology, bus } = this.#core;
    const closed = topology
      .bindingsOf(queue.name)
      .filter((binding) => binding.intervals.length > 0 && isSpent(binding, queue));
    // A narrowing that failed is still to be done where no record asks for it any more.
    if (closed.length === 0 && this.#filters.are(queue, topology.filters(queue.name))) return true;
    const state = await bus.cursorState(queue.name);
    if (state === undefined) return true;
    let left = false;
    for (const { exchange, key, arguments: args } of closed) {
      await untilWritten(this.#core, async () => {
        const binding = topology.binding(queue.name, exchange, key, args);
        if (binding === undefined) return undefined;
        const kept: Interval[] = [];
        for (const interval of living(binding, queue))
          if (!(await this.#isEmptied(state, interval, binding))) kept.push(interval);
        left ||= kept.some(({ until }) => until !== undefined);
        if (kept.length === 0) return topology.removeBinding(binding);
        return kept.length === binding.intervals.length
          ? undefined
          : topology.writeBinding({ queue: queue.name, exchange, key, arguments: args }, kept, binding);
      });
    }
    const end = await bus.lastSequence();
    const filters = topology.filters(queue.name);
    if (await this.#filters.write(queue, filters, topology.revision)) await this.#collect(state, end, filters);
    return !left;
  }

  /**
   * Whether nothing of a closed interval is queued, held or nak'd: the floor has passed it, or the queue is empty (an idle
   * queue's floor never moves). The log itself says whether it is: the server that leads the cursor may have heard less of
   * the log than was confirmed (measured on three servers: 10 of 150 states right after the PubAck said 0).
   */
  async #isEmptied(
    state: CursorState,
    { from, until, closing, kind }: Interval,
    { exchange, key }: Binding,
  ): Promise<boolean> {
    if (until === undefined || closing === true) return false;
    if (state.ackFloor >= until) return true;
    if (state.pending > 0 || state.ackPending > 0) return false;
    if (state.delivered >= until) return true;
    const { bus, topology } = this.#core;
    const filters = toFilters(kind, exchange, key, topology.root);
    return isFault(filters) || !(await anyAbove(bus, filters, Math.max(from, state.delivered), until));
  }

  /** A narrowing over a long stretch leaves what arrived during it for ever, unless it is collected. */
  async #collect(state: CursorState, end: number, after: readonly string[]): Promise<void> {
    if (end - state.ackFloor <= DRAIN_ABOVE) return;
    const gone = state.filters.filter((filter) => !after.includes(filter));
    if (gone.length > 0) await this.#core.bus.collect(gone, Math.max(state.delivered, state.ackFloor));
  }
}

/** Whether the binding has a closed interval, or one of an earlier life of the queue. */
function isSpent(
  binding: { readonly intervals: readonly { readonly until?: number; readonly queueId: number }[] },
  queue: Queue,
): boolean {
  return binding.intervals.some((interval) => interval.until !== undefined || interval.queueId !== queue.id);
}
