/**
 * How many messages of a queue are ready (design §6, "Ready count").
 *
 * Responsibilities: what the cursor has pending and what was put back, less what lies outside every interval while a
 * binding's filter stands wider than the binding. Used by: queue. Separate because counting is not delivering:
 * nothing here changes anything.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Queue, Topology } from "@amqp/topology";
import { implicitFilter, isFault, toFilters } from "@amqp/translator";
import type { Bus, CursorState } from "./bus.ts";
import type { Desk } from "./desk.ts";
import { type FilterInterval, type Segment, segmentsAbove } from "./interval-segments.ts";

/** A counting cursor holds interest itself: further from the log's end than this it must not stand (design §5, LEAK). */
const COUNTABLE = 50_000;
/** How often a state is read again that is behind the log: milliseconds, in practice. */
const LOOKS = 10;

/** Resolves to the ready messages; `bound`: it may be fewer, since some lie too far back to be counted. */
export async function countReady(desk: Desk): Promise<{ readonly messages: number; readonly bound: boolean }> {
  const { pulling, settling, bus, name, held, options, topology } = desk;
  await pulling.calm();
  // Before the state is read: who is asked first waits until the bus has processed what its clients settled.
  const [elsewhere] = await Promise.all([options.heldElsewhere(name), settling.settled()]);
  const state = await readState(bus, name);
  if (state === undefined) return { messages: 0, bound: false };
  const putBack = Math.max(0, state.ackPending - held.knownAt(state.deliveredSequence) - elsewhere.size);
  const queue = topology.queue(name);
  if (state.pending === 0 || queue === undefined) return { messages: state.pending + putBack, bound: false };
  const outside = await countOutside(bus, state, intervalsOf(topology, queue));
  return { messages: Math.max(0, state.pending - outside.messages) + putBack, bound: outside.bound };
}

/** The cursor's state; where it says that nothing is pending, after it has heard of the log's latest message. */
async function readState(bus: Bus, name: string): Promise<CursorState | undefined> {
  for (let look = 1; ; look++) {
    const state = await bus.cursorState(name);
    if (state === undefined || state.pending > 0 || look > LOOKS) return state;
    if (!(await bus.anyAbove(state.filters, state.delivered))) return state;
    await sleep(look);
  }
}

function intervalsOf(topology: Topology, queue: Queue): FilterInterval[] {
  const intervals: FilterInterval[] = [{ filters: [implicitFilter(queue.name, topology.root)], from: queue.from }];
  for (const { exchange, key, intervals: own } of topology.bindingsOf(queue.name)) {
    for (const { kind, from, until, queueId } of own) {
      if (queueId !== queue.id) continue;
      const filters = toFilters(kind, exchange, key, topology.root);
      if (!isFault(filters)) intervals.push({ filters, from, until });
    }
  }
  return intervals;
}

/** Of what is pending, how much is in no interval. One look at the bus where the cursor's filters are the bindings'. */
async function countOutside(
  bus: Bus,
  state: CursorState,
  intervals: readonly FilterInterval[],
): Promise<{ readonly messages: number; readonly bound: boolean }> {
  const segments = segmentsAbove(state.delivered, intervals).filter(({ filters }) => !isSame(filters, state.filters));
  const first = segments[0];
  if (first === undefined) return { messages: 0, bound: false };
  const countable = (await bus.lastSequence()) - COUNTABLE;
  let messages = 0;
  let bound = false;
  for (const segment of segments) {
    if (segment.above < countable) bound = true;
    else messages += await outsideOf(bus, state, segment);
  }
  return { messages, bound };
}

async function outsideOf(bus: Bus, state: CursorState, { above, until, filters }: Segment): Promise<number> {
  const matching = await within(bus, state.filters, above, until);
  if (matching === 0 || filters.length === 0) return matching;
  return matching - (await within(bus, filters, above, until));
}

async function within(bus: Bus, filters: readonly string[], above: number, until: number | undefined): Promise<number> {
  const all = await bus.count(filters, above);
  return all === 0 || until === undefined ? all : all - (await bus.count(filters, until));
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  const those = new Set(b);
  return a.every((filter) => those.has(filter));
}
