/**
 * Bindings: intervals of the log on a filter (design §1, §4 BIND, UNBIND).
 *
 * Responsibilities: opening an interval (filters onto the cursor, then the sequence, then the record), and what of a queue
 * or an exchange is to be closed, and may be. Used by: changing, exchanges. How an interval is closed is closing's;
 * narrowing a cursor afterwards is chores' task. Separate because the order of these steps is what keeps deliveries right.
 */
import type { Exchange, Interval, Queue } from "@amqp/topology";
import { antichain, isFault, toFilters } from "@amqp/translator";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import type { Closing } from "./closing.ts";
import { type Core, isForeign, queueLane, readyQueue, refuseFault, untilWritten, usableQueue } from "./context.ts";
import type { CursorFilters } from "./filters.ts";
import { hasClosing, hasOpen, living, openInterval } from "./open-intervals.ts";
import type { BindingSpec } from "./verbs.ts";

/** A binding that passed the checks and waits in its queue's lane. */
interface Bind {
  readonly spec: BindingSpec;
  readonly exchange: Exchange;
  readonly filters: readonly string[];
}

export class Bindings {
  readonly #core: Core;
  readonly #filters: CursorFilters;
  readonly #closing: Closing;
  /** Told of a queue with an interval that is closed, or was to be: its cursor can be narrowed one day. */
  readonly #closed: (queue: string) => void;

  constructor(core: Core, filters: CursorFilters, closing: Closing, closed: (queue: string) => void) {
    this.#core = core;
    this.#filters = filters;
    this.#closing = closing;
    this.#closed = closed;
  }

  /** See `Verbs.bind`: in order up to the first refusal; those of one queue become one update of its cursor. */
  async bind(
    connection: string,
    specs: readonly BindingSpec[],
  ): Promise<{ readonly done: number; readonly refusal: Refusal | undefined }> {
    const checked: Bind[] = [];
    let refusal: Refusal | undefined;
    for (const spec of specs) {
      const bind = await this.#check(connection, spec);
      if (isRefusal(bind)) {
        refusal = bind;
        break;
      }
      checked.push(bind);
    }
    const { lanes } = this.#core;
    const answers = await Promise.all(checked.map((bind) => lanes.join(queueLane(bind.spec.queue), bind, this.#open)));
    const failed = answers.findIndex(isRefusal);
    return failed < 0 ? { done: answers.length, refusal } : { done: failed, refusal: answers[failed] };
  }

  /** RabbitMQ's order: default exchange, exchange, queue, exclusiveness; then what only the bus refuses. */
  async #check(connection: string, spec: BindingSpec): Promise<Bind | Refusal> {
    if (spec.exchange === "") return refuse("default-exchange");
    const exchange = await this.#exchange(spec.exchange);
    if (exchange === undefined) return refuse("no-exchange", { exchange: spec.exchange });
    const queue = await usableQueue(this.#core, connection, spec.queue);
    if (isRefusal(queue)) return queue;
    const filters = toFilters(exchange.kind, exchange.name, spec.key, this.#core.topology.root);
    return isFault(filters) ? refuseFault(filters) : { spec, exchange, filters };
  }

  async #exchange(name: string): Promise<Exchange | undefined> {
    const exchange = this.#core.topology.exchange(name);
    if (exchange?.state === "ready") return exchange;
    await this.#core.topology.fence();
    const again = this.#core.topology.exchange(name);
    return again?.state === "ready" ? again : undefined;
  }

  /** Inside the queue's lane: all binds that arrived together. */
  readonly #open = async (binds: readonly Bind[]): Promise<readonly (Refusal | undefined)[]> => {
    const { topology, bus } = this.#core;
    const name = (binds[0] as Bind).spec.queue;
    const queue = await readyQueue(this.#core, name);
    if (queue === undefined) return binds.map(() => refuse("no-queue", { queue: name }));
    const fresh = new Map<string, Bind>();
    for (const bind of binds) {
      const { exchange, key, arguments: args } = bind.spec;
      if (openInterval(topology.binding(name, exchange, key, args), queue, bind.exchange) === undefined)
        fresh.set(JSON.stringify([exchange, key, args]), bind);
    }
    if (fresh.size > 0) {
      // First the filters, then the sequence: no message above it can pass the cursor by.
      const wider = antichain([...topology.filters(name), ...[...fresh.values()].flatMap((bind) => bind.filters)]);
      if (!(await this.#filters.write(queue, wider, topology.revision)))
        return binds.map(() => refuse("no-queue", { queue: name }));
      const from = await bus.lastSequence();
      await Promise.all([...fresh.values()].map((bind) => this.#write(queue, bind, from)));
    }
    return Promise.all(binds.map((bind) => this.#stillThere(queue, bind)));
  };

  async #write(queue: Queue, bind: Bind, from: number): Promise<void> {
    const { topology } = this.#core;
    const { exchange, spec } = bind;
    const interval: Interval = { from, queueId: queue.id, exchangeId: exchange.id, kind: exchange.kind };
    const at = { queue: queue.name, exchange: exchange.name, key: spec.key, arguments: spec.arguments };
    await untilWritten(this.#core, async () => {
      const present = topology.binding(at.queue, at.exchange, at.key, at.arguments);
      if (openInterval(present, queue, exchange) !== undefined) return undefined;
      const written = await topology.writeBinding(at, [...living(present, queue), interval], present);
      return written === "conflict" ? written : undefined;
    });
  }

  /**
   * The exchange may have been deleted between the check and the record, by a deletion that did not see the record: then
   * the binding came first and goes with it. What was published in between is in the queue, so it was no failure.
   */
  async #stillThere(queue: Queue, bind: Bind): Promise<undefined> {
    const present = this.#core.topology.exchange(bind.exchange.name);
    if (present?.state === "ready" && present.id === bind.exchange.id) return undefined;
    await this.#close(queue, [bind.spec], (interval) => interval.exchangeId === bind.exchange.id);
    return undefined;
  }

  /**
   * See `Verbs.unbind`; resolves to whether an interval was closed. What is not bound is unbound; not so what an earlier
   * leader, or a silent bus, left in the middle of it.
   */
  async unbind(connection: string, spec: BindingSpec): Promise<Refusal | boolean> {
    if (spec.exchange === "") return refuse("default-exchange");
    return this.#core.lanes.run(queueLane(spec.queue), async () => {
      const queue = await readyQueue(this.#core, spec.queue);
      if (queue === undefined) return false;
      const { topology } = this.#core;
      const stands = (): boolean => {
        const binding = topology.binding(spec.queue, spec.exchange, spec.key, spec.arguments);
        return hasOpen(binding, queue) || hasClosing(binding, queue);
      };
      if (!stands()) {
        await topology.fence();
        if (!stands()) return false;
      }
      if (isForeign(connection, queue)) return refuse("queue-locked", { queue: spec.queue });
      await this.#close(queue, [spec], () => true);
      return true;
    });
  }

  /** Closes every open interval of this life of the exchange; it is no longer `ready`. */
  async closeAll(exchange: Exchange): Promise<void> {
    const { topology, lanes } = this.#core;
    const queues = new Set(topology.bindingsFrom(exchange.name).map((binding) => binding.queue));
    await Promise.all(
      [...queues].map((name) =>
        lanes.run(queueLane(name), async () => {
          const queue = topology.queue(name);
          if (queue === undefined) return;
          const own = topology
            .bindingsOf(name)
            .filter((binding) => binding.exchange === exchange.name)
            .filter((binding) => hasOpen(binding, queue) || hasClosing(binding, queue));
          if (own.length > 0) await this.#close(queue, own, (interval) => interval.exchangeId === exchange.id);
        }),
      ),
    );
  }

  /** In the lane. Whatever becomes of it, its cursor is seen to: it is finished there, or narrowed. */
  async #close(queue: Queue, bindings: readonly BindingSpec[], meant: (interval: Interval) => boolean): Promise<void> {
    try {
      await this.#closing.close(queue, bindings, meant);
    } finally {
      this.#closed(queue.name);
    }
  }
}
