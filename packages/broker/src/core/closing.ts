/**
 * Undoing bindings: how an interval of the log comes to its end (design §4, UNBIND).
 *
 *   open → closing → closed
 *
 * Where the end lies can only be said once nobody delivers what is above it: a replica that has not heard of it may, and
 * what its client hands back then would be in no interval. So every live replica is told first that there will be an end;
 * from then on what lies above the log's end of that moment is undecided, and waits in its sieve. The end is read when all
 * of them know. None has delivered anything above it, and none will: it need not be waited for that they know the end.
 *
 * Responsibilities: these two writes, the barrier between them, and finishing what a crash or a silent bus left closing.
 * Used by: bindings, chores, reconcile; runs inside the queue's lane. Separate from bindings because a leader may die at
 * every step of it.
 */
import type { Binding, Interval, Queue } from "@amqp/topology";
import { type Core, untilWritten } from "./context.ts";
import { hasClosing, living } from "./open-intervals.ts";
import type { BindingSpec } from "./verbs.ts";

export class Closing {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Closes the open intervals that are meant of these bindings of the queue, and what was left closing of them. */
  async close(queue: Queue, bindings: readonly BindingSpec[], meant: (interval: Interval) => boolean): Promise<void> {
    const least = await this.#core.bus.lastSequence();
    const begun = (interval: Interval): Interval =>
      interval.until === undefined && meant(interval)
        ? { ...interval, until: Math.max(least, interval.from), closing: true }
        : interval;
    await Promise.all(bindings.map((at) => this.#rewrite(queue, at, begun)));
    await this.#end(queue, bindings);
  }

  /** Ends what was left closing of the queue; resolves to the exchanges from which a binding of it went. */
  async finish(queue: Queue): Promise<readonly string[]> {
    const left = this.#core.topology.bindingsOf(queue.name).filter((binding) => hasClosing(binding, queue));
    await this.#end(queue, left);
    return [...new Set(left.map(({ exchange }) => exchange))];
  }

  async #end(queue: Queue, bindings: readonly BindingSpec[]): Promise<void> {
    const { topology, bus, fleet } = this.#core;
    const closing = bindings.filter((at) => hasClosing(this.#present(at), queue));
    if (closing.length === 0) return;
    await fleet.barrier(topology.revision);
    const last = await bus.lastSequence();
    const ended = ({ closing: isClosing, ...interval }: Interval): Interval =>
      isClosing === true ? { ...interval, until: Math.max(last, interval.until ?? 0) } : interval;
    await Promise.all(closing.map((at) => this.#rewrite(queue, at, ended)));
  }

  /** Writes the binding's record with its intervals changed, if that changes any. */
  async #rewrite(queue: Queue, at: BindingSpec, change: (interval: Interval) => Interval): Promise<void> {
    const { topology } = this.#core;
    await untilWritten(this.#core, async () => {
      const present = this.#present(at);
      if (present === undefined) return undefined;
      const before = living(present, queue);
      const after = before.map(change);
      if (
        after.every(({ until, closing }, place) => until === before[place]?.until && closing === before[place]?.closing)
      )
        return undefined;
      const { exchange, key, arguments: args } = at;
      return topology.writeBinding({ queue: queue.name, exchange, key, arguments: args }, after, present);
    });
  }

  #present({ queue, exchange, key, arguments: args }: BindingSpec): Binding | undefined {
    return this.#core.topology.binding(queue, exchange, key, args);
  }
}
