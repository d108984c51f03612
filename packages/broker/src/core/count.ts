/**
 * How many messages of a queue are ready (design §6, "Ready count").
 *
 * Responsibilities: what the cursor has pending and what was put back, less what lies outside every interval while a
 * binding's filter stands wider than the binding. Used by: queue. Separate because counting is not delivering:
 * nothing here changes anything.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Queue, Topology } from "@amqp/topology";
import { implicitFilter, isDisjoint, isFault, toFilters } from "@amqp/translator";
import type { Bus, CursorState } from "./bus.ts";
import type { Desk } from "./desk.ts";
import { type FilterInterval, type Segment, segmentsAbove } from "./interval-segments.ts";
import { Lag } from "./lag.ts";
import { anyWithin } from "./log-look.ts";
import { isClosing } from "./open-intervals.ts";
import { HEARING, tally } from "./tally.ts";
import { mayCount } from "./walk.ts";

/** Ready messages; `bound`: not exactly, since they lie too far back to be counted. */
export interface Count {
  readonly messages: number;
  readonly bound: boolean;
}

/**
 * Resolves to the ready messages; `bound`: it may be fewer, since they lie too far back to be counted. A cursor's own
 * numbers lag a PubAck by milliseconds (measured: 2–4 % of states on a busy machine): `quick` takes them as they are, else
 * what is pending is counted in the log, or where that would hold the bus up, read again after many such milliseconds.
 */
export async function countReady(desk: Desk, quick: boolean): Promise<Count> {
  const lag = new Lag(desk.bus);
  for (;;) {
    const { segments, ...count } = await countOnce(desk, quick);
    // A server that counts may have heard less of the log than the one that leads it.
    const isTold = quick || count.messages > 0 || segments.length === 0;
    if (isTold || !(await lag.isBehind((until) => anyWithin(desk.bus, segments, until)))) return count;
  }
}

/** `segments`: where in the log what is pending lies; none where it was not looked for. */
async function countOnce(desk: Desk, quick: boolean): Promise<Count & { readonly segments: readonly Segment[] }> {
  const { pulling, dealing, settling, bus, name, held, options, topology } = desk;
  // What was undone before this count was asked for has its end.
  if (topology.bindingsOf(name).some(isClosing)) await topology.fence();
  await pulling.calm();
  // What came and waits for the fence is out, and in nobody's hands yet.
  await dealing.dealt();
  // Before the state is read: who is asked first waits until the bus has processed what its clients settled.
  const [elsewhere] = await Promise.all([options.heldElsewhere(name), settling.settled()]);
  const state = await bus.cursorState(name);
  if (state === undefined) return { messages: 0, bound: false, segments: [] };
  const putBack = Math.max(0, state.ackPending - held.knownAt(state.deliveredSequence) - elsewhere.size);
  const queue = topology.queue(name);
  if (queue === undefined) return { messages: state.pending + putBack, bound: false, segments: [] };
  const segments = segmentsAbove(state.delivered, intervalsOf(topology, queue));
  if (!quick && state.pending === 0 && !(await anyWithin(bus, segments))) {
    // The log's leader says so, and no counting cursor is needed: most counts of most queues.
    return { messages: putBack, bound: false, segments: [] };
  }
  const { messages, bound } = await countPending(bus, state, segments, quick);
  return { messages: messages + putBack, bound, segments };
}

function intervalsOf(topology: Topology, queue: Queue): FilterInterval[] {
  const intervals: FilterInterval[] = [{ filters: [implicitFilter(queue.name, topology.root)], from: queue.from }];
  for (const { exchange, key, intervals: own } of topology.bindingsOf(queue.name)) {
    for (const { kind, from, until, closing, queueId } of own) {
      if (queueId !== queue.id) continue;
      const filters = toFilters(kind, exchange, key, topology.root);
      // What is undecided counts as it does where it was sent out already: as ready.
      if (!isFault(filters)) intervals.push({ filters, from, until: closing === true ? undefined : until });
    }
  }
  return intervals;
}

/**
 * What is pending in an interval. The cursor's own number says it where its filters are the bindings' all the way, and
 * no two of them overlap: elsewhere it counts what lies outside every interval, or a message twice (measured: filters
 * that overlap in part), or what it had passed by when a binding came. There the log is counted itself.
 */
async function countPending(
  bus: Bus,
  state: CursorState,
  segments: readonly Segment[],
  quick: boolean,
): Promise<Count> {
  const [first] = segments;
  const isPlain =
    segments.length === 1 && first !== undefined && isSame(first.filters, state.filters) && isDisjoint(state.filters);
  if (quick && (isPlain || state.pending === 0)) return { messages: state.pending, bound: false };
  const log = await bus.logState();
  if (log.lastSequence <= state.delivered) return { messages: 0, bound: false };
  if (bus.isClustered) return await tally(bus, state, segments, isPlain);
  if (!mayCount(log, state.delivered)) {
    if (!isPlain) return { messages: state.pending, bound: true };
    await sleep(HEARING);
    return { messages: (await bus.cursorState(state.queue))?.pending ?? 0, bound: false };
  }
  if (isPlain) return { messages: await bus.count(state.filters, state.delivered), bound: false };
  const matching = new Map<number, Promise<number>>();
  /** What the cursor's filters match above the place-th segment's start; nothing behind the last one's end. */
  const above = (place: number): Promise<number> => {
    const segment = segments[place];
    if (segment === undefined) return Promise.resolve(0);
    const known = matching.get(place) ?? bus.count(state.filters, segment.above);
    matching.set(place, known);
    return known;
  };
  /** A thousand bindings are a thousand segments: stretches in which nothing lies are passed over whole. */
  const inside = async (from: number, to: number): Promise<number> => {
    if ((await above(from)) === (await above(to))) return 0;
    if (to - from > 1) {
      const middle = Math.floor((from + to) / 2);
      return (await inside(from, middle)) + (await inside(middle, to));
    }
    const { filters, above: start, until } = segments[from] as Segment;
    return filters.length === 0 ? 0 : within(bus, filters, start, until);
  };
  return { messages: await inside(0, segments.length), bound: false };
}

async function within(bus: Bus, filters: readonly string[], above: number, until: number | undefined): Promise<number> {
  const all = await bus.count(filters, above);
  if (all === 0 || until === undefined) return all;
  // Of a cluster's servers the one that counts first may have heard of less than the second.
  return Math.max(0, all - (await bus.count(filters, until)));
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  const those = new Set(b);
  return a.every((filter) => those.has(filter));
}
