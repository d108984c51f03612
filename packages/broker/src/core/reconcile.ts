/**
 * Reconciling: what a new leader does before anything else.
 *
 * Responsibilities: finishing what a crash left `making`, `deleting` or closing; dropping exclusive queues whose owner is gone and,
 * where a fleet starts, transient queues and exchanges; giving every cursor the filters its records say; removing
 * cursors that no record names; and learning who consumes. Used by: leader, before it leads. Separate because it is the
 * only code that must work from any state.
 */
import type { Queue } from "@amqp/topology";
import type { CursorState } from "./bus.ts";
import type { Chores } from "./chores.ts";
import type { Closing } from "./closing.ts";
import type { Consumers, Consuming } from "./consumers.ts";
import { type Core, exchangeLane, queueLane } from "./context.ts";
import type { Exchanges } from "./exchanges.ts";
import type { CursorFilters } from "./filters.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { ownCursors } from "./namespace.ts";
import { hasOpen } from "./open-intervals.ts";

/** Milliseconds until a queue whose consumer nobody leads is tried again. */
const LATER = 2_000;
/** How many queues are worked on at once. */
const AT_ONCE = 16;

export interface Parts {
  readonly core: Core;
  readonly filters: CursorFilters;
  readonly lifecycle: Lifecycle;
  readonly closing: Closing;
  readonly exchanges: Exchanges;
  readonly chores: Chores;
  readonly consumers: Consumers;
  /** This replica's own consumers. */
  consuming(): readonly Consuming[];
}

/** `starting`: no other replica lives, so what is not durable goes. */
export async function reconcile(parts: Parts, starting: boolean): Promise<void> {
  const { core } = parts;
  parts.filters.forgetAll();
  await learn(parts);
  /** Exchanges that lost a binding here. */
  const went = new Set<string>();
  const states = new Map((await ownCursors(core.bus)).map((state) => [state.queue, state]));
  await eachOf([...core.topology.queues()], async (queue) => {
    const state = states.get(queue.name);
    if (state?.isSilent === true) void later(parts, queue, starting);
    else await core.lanes.run(queueLane(queue.name), () => one(parts, queue, state, starting, went));
  });
  const orphans = [...states.values()].filter(
    (state) => state.isSilent !== true && core.topology.queue(state.queue) === undefined,
  );
  await eachOf(orphans, async (state) => {
    core.log.warn({ queue: state.queue }, "removing a consumer that no queue's record names");
    await parts.lifecycle.removeCursor(state);
  });
  for (const exchange of [...core.topology.exchanges()]) {
    if (exchange.state === "deleting")
      await core.lanes.run(exchangeLane(exchange.name), () => parts.exchanges.finishDeletion(exchange));
    else if (starting && !exchange.durable) await parts.exchanges.delete(exchange.name, { ifUnused: false });
    else if (went.has(exchange.name) || wasBound(core, exchange.name))
      await parts.exchanges.bindingsWent(exchange.name);
  }
}

/**
 * One whose cursor nobody leads: alone, when somebody does, since the others need not wait for it. Its lane is taken from
 * now on, so that nothing is changed before.
 */
async function later(parts: Parts, queue: Queue, starting: boolean): Promise<void> {
  const { core } = parts;
  const went = new Set<string>();
  core.log.warn({ queue: queue.name }, "nobody leads a queue's consumer; it is seen to when somebody does");
  try {
    await core.lanes.run(queueLane(queue.name), async () => {
      const state = await core.bus.cursorState(queue.name);
      const present = core.topology.queue(queue.name);
      if (present?.id === queue.id) await one(parts, present, state, starting, went);
    });
    for (const exchange of went) await parts.exchanges.bindingsWent(exchange);
  } catch (error) {
    core.log.warn({ err: error, queue: queue.name }, "a queue whose consumer nobody led could not be seen to");
    if (core.leadership.mayWrite) setTimeout(() => void later(parts, queue, starting), LATER).unref();
  }
}

/** Who consumes what: a leader's only memory. */
async function learn({ core, consumers, consuming }: Parts): Promise<void> {
  consumers.clear();
  const tell = (replica: string, all: readonly Consuming[]): void => {
    for (const { queue, exclusive } of all) consumers.join(queue, replica, exclusive);
  };
  tell(core.fleet.replica, consuming());
  const { answers } = await core.fleet.everyone<readonly Consuming[]>("consuming", null);
  for (const [replica, all] of answers) tell(replica, all);
}

async function one(
  parts: Parts,
  queue: Queue,
  state: CursorState | undefined,
  starting: boolean,
  went: Set<string>,
): Promise<void> {
  const { core, filters, lifecycle, closing, chores } = parts;
  const { topology } = core;
  const ownerGone = queue.exclusive !== null && !core.fleet.lives(queue.exclusive);
  if (queue.state !== "ready" || ownerGone || (starting && !queue.durable)) {
    for (const exchange of await finish(parts, queue)) went.add(exchange);
    return;
  }
  // A fleet that starts has no consumers yet: an auto-delete queue waits for its first one again, as after a declare.
  if (starting && queue.consumed) await topology.updateQueue(queue, { consumed: false });
  for (const exchange of await closing.finish(queue)) went.add(exchange);
  const wanted = topology.filters(queue.name);
  if (state === undefined || state.queueId !== queue.id) {
    core.log.error({ queue: queue.name }, "a queue's consumer was gone; made anew, what it held is lost");
    await lifecycle.createCursor(queue, wanted);
    return;
  }
  filters.found(queue.name, queue.id, state.filters);
  await filters.write(queue, wanted, topology.revision);
  if (topology.bindingsOf(queue.name).some(({ intervals }) => intervals.some(({ until }) => until !== undefined)))
    chores.seeTo(queue.name);
}

/** Marked first, so that a crash in the middle leaves it `deleting` and nothing else. Resolves to its exchanges. */
async function finish({ core, lifecycle }: Parts, queue: Queue): Promise<readonly string[]> {
  const marked = queue.state === "deleting" ? queue : await core.topology.updateQueue(queue, { state: "deleting" });
  return marked === "conflict" ? [] : lifecycle.finishDeletion(marked, await core.bus.cursorState(marked.name));
}

/** An auto-delete exchange whose last binding went while nobody could see to it. */
function wasBound(core: Core, exchange: string): boolean {
  const bindings = core.topology.bindingsFrom(exchange);
  return (
    bindings.length > 0 &&
    !bindings.some((binding) => {
      const queue = core.topology.queue(binding.queue);
      return queue !== undefined && hasOpen(binding, queue);
    })
  );
}

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
