/**
 * The life of a queue on the bus: made, drained, gone.
 *
 * Responsibilities: the steps from no record to `ready`, and from `deleting` to no record, each of which may be run
 * again by whoever leads after a crash. Used by: queues, chores, reconcile. Runs inside the queue's lane.
 * Separate because these steps know no client: what may be declared or deleted is decided in queues.
 */
import type { Owner, Permit, Queue, QueueRecord } from "@amqp/topology";
import { implicitFilter } from "@amqp/translator";
import type { CursorState } from "./bus.ts";
import { type Core, untilWritten } from "./context.ts";
import { emptyCursor } from "./drain.ts";
import { type CursorFilters, isTimeout } from "./filters.ts";
import { raiseFloor } from "./floor.ts";
import type { QueueSpec } from "./verbs.ts";
import { isCheap, mayDelete } from "./walk.ts";

/** Milliseconds within which a backlog that is worth the trouble does not come to be. */
const RECENT = 1_000;

export class Lifecycle {
  readonly #core: Core;
  readonly #filters: CursorFilters;
  /** The bus permits it, as far as is known. */
  #mayRaise: boolean = true;

  constructor(core: Core, filters: CursorFilters) {
    this.#core = core;
    this.#filters = filters;
  }

  /** `making` → cursor → `ready`. "conflict": somebody else made it first. */
  async make(name: string, spec: QueueSpec, exclusive: Owner | null): Promise<Queue | "conflict"> {
    const { topology, bus, fleet, leadership } = this.#core;
    const record: QueueRecord = {
      state: "making",
      durable: spec.durable,
      autoDelete: spec.autoDelete,
      exclusive,
      type: spec.type,
      arguments: spec.arguments,
      from: 0,
      consumed: false,
    };
    leadership.assert();
    const making = await topology.createQueue(name, record);
    if (making === "conflict") return making;
    await this.createCursor(making);
    // Read after the cursor was made: what is above it cannot have passed the cursor by.
    const from = await bus.lastSequence();
    leadership.assert();
    const ready = await topology.updateQueue(making, { state: "ready", from });
    if (ready !== "conflict") await fleet.barrier(ready.revision);
    return ready;
  }

  /** Makes the cursor of a queue's record; one left over from an earlier life goes first. */
  async createCursor(queue: Queue, wanted?: readonly string[]): Promise<void> {
    const { bus, leadership, topology } = this.#core;
    const filters = wanted ?? [implicitFilter(queue.name, topology.root)];
    const { permit } = leadership;
    const spec = { queue: queue.name, filters, revision: queue.revision, queueId: queue.id };
    const left = async (): Promise<boolean> => {
      const state = await bus.cursorState(queue.name);
      if (state?.queueId === queue.id) return false;
      if (state !== undefined) await this.removeCursor(state);
      return true;
    };
    try {
      await bus.createCursor(spec, permit);
    } catch (error) {
      permit();
      // Silence may mean that it is there; a refusal may mean that another stands in its place.
      const state = await bus.cursorState(queue.name);
      if (state === undefined && !isTimeout(error)) throw error;
      if (await left()) await bus.createCursor(spec, permit);
    }
    this.#filters.found(queue.name, queue.id, filters);
  }

  /** Whether {@link finishDeletion} from this state will take long: then the client is answered before it. */
  async isLong(state: CursorState): Promise<boolean> {
    if (state.pending === 0 && state.ackPending === 0) return false;
    return !mayDelete(await this.#core.bus.logState(), state.ackFloor);
  }

  /**
   * From `deleting` (or `making`, after a crash) to gone; resolves to the exchanges it was bound to. `state` is the
   * cursor's, read since the record said so.
   */
  async finishDeletion(queue: Queue, state: CursorState | undefined): Promise<readonly string[]> {
    const { topology, fleet } = this.#core;
    if (state !== undefined) await this.removeCursor(state);
    this.#filters.forget(queue.name);
    const bindings = topology.bindingsOf(queue.name);
    await Promise.all(
      bindings.map((binding) =>
        untilWritten(this.#core, async () => {
          const present = topology.binding(queue.name, binding.exchange, binding.key, binding.arguments);
          return present === undefined ? "removed" : topology.removeBinding(present);
        }),
      ),
    );
    await untilWritten(this.#core, async () => {
      const present = topology.queue(queue.name);
      return present?.id === queue.id ? topology.removeQueue(present) : "removed";
    });
    await fleet.barrier(topology.revision);
    return [...new Set(bindings.map((binding) => binding.exchange))];
  }

  /**
   * Removes a cursor and all interest that it held. Where its floor is far behind the log's end JetStream would leave
   * what it held there for ever (design §5, LEAK): such a one is drained first, and what came meanwhile is collected.
   */
  async removeCursor(state: CursorState): Promise<void> {
    const { bus, leadership } = this.#core;
    const { permit } = leadership;
    const drainedTo = await emptyCursor(bus, state, permit);
    if (drainedTo === undefined) await this.#raise(state, permit);
    await bus.deleteCursor(state.queue, permit);
    if (drainedTo !== undefined) await bus.collect(state.filters, drainedTo);
  }

  /** An empty one far behind the log's end goes without the bus looking at all that lies between. */
  async #raise(state: CursorState, permit: Permit): Promise<void> {
    const { bus, topology, log } = this.#core;
    if (!this.#mayRaise || state.pending > 0 || state.ackPending > 0) return;
    if (isCheap(await bus.logState(RECENT), state.ackFloor)) return;
    const subject = implicitFilter(state.queue, topology.root);
    this.#mayRaise = (await raiseFloor(bus, state.queue, subject, permit)) !== "denied";
    if (!this.#mayRaise)
      log.info(
        { subject },
        "this login may not publish there: deleting a queue beside a large backlog holds the bus up",
      );
  }
}
