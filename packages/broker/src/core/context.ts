/**
 * What the verbs share: the bus, the mirror, the fleet, the lanes, the cursors, a log.
 *
 * Used by: exchanges, queues, bindings, lifecycle, chores, reconcile. Separate so that each of them is handed one thing.
 */
import type { Queue, Topology } from "@amqp/topology";
import type { Fault } from "@amqp/translator";
import { type Refusal, refuse } from "../refusals.ts";
import type { Bus } from "./bus.ts";
import type { Cursors } from "./cursors.ts";
import type { Fleet } from "./fleet.ts";
import type { Lanes } from "./lanes.ts";
import type { Leadership } from "./leadership.ts";
import type { Log } from "./log.ts";

export interface Core {
  readonly bus: Bus;
  readonly topology: Topology;
  readonly fleet: Fleet;
  readonly lanes: Lanes;
  readonly cursors: Cursors;
  readonly leadership: Leadership;
  readonly log: Log;
}

/** The lane of a queue, and of an exchange: they may bear one name. */
export const queueLane = (name: string): string => `q.${name}`;
export const exchangeLane = (name: string): string => `x.${name}`;

/** A queue that clients may see, or undefined: caught up before that is said (design §4, FENCE). */
export async function readyQueue(core: Core, name: string): Promise<Queue | undefined> {
  const queue = core.topology.queue(name);
  if (queue?.state === "ready") return queue;
  await core.topology.fence();
  const again = core.topology.queue(name);
  return again?.state === "ready" ? again : undefined;
}

/** Whether the queue is exclusive to another connection. Their ids are unique over the whole fleet. */
export function isForeign(connection: string, queue: Queue): boolean {
  return queue.exclusive !== null && queue.exclusive.connection !== connection;
}

/** The queue, if this connection may use it; else 404, or 405 where it is another connection's. */
export async function usableQueue(core: Core, connection: string, name: string): Promise<Queue | Refusal> {
  const queue = await readyQueue(core, name);
  if (queue === undefined) return refuse("no-queue", { queue: name });
  return isForeign(connection, queue) ? refuse("queue-locked", { queue: name }) : queue;
}

/** The translator's refusal as ours. */
export function refuseFault(fault: Fault): Refusal {
  return refuse(fault.code === 406 ? "no-subject" : "no-filter", { text: fault.text });
}

/** How often a lost race for a record is run again before it is taken for a bug. */
const ATTEMPTS = 20;

/**
 * Runs `attempt` until it does not answer "conflict", catching up in between. In a fleet with one writer a conflict is
 * rare: an operator's hand, or the last write of a leader that is no more.
 */
export async function untilWritten<T>(core: Core, attempt: () => Promise<T | "conflict">): Promise<T> {
  for (let tries = 0; tries < ATTEMPTS; tries++) {
    // In the turn of the write: a leader that stood still for longer than its lease writes nothing.
    core.leadership.assert();
    const written = await attempt();
    if (written !== "conflict") return written;
    await core.topology.fence();
  }
  throw new Error("the topology bucket kept changing under a write; is another program writing to it?");
}
