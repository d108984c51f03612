/**
 * Counting what is pending without a cursor made for it: on a cluster.
 *
 * Responsibilities: a few messages are followed one by one in the log, many are taken from the queue's own cursor, less the
 * few that no interval holds. Used by: count. Separate because it makes up for one fact of a cluster: while servers die and
 * come back, throwaway cursors of the log leave the servers with copies that differ (docs/cluster.md), and each is a Raft group.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isDisjoint } from "@amqp/translator";
import type { Bus, CursorState } from "./bus.ts";
import type { Segment } from "./interval-segments.ts";
import { countWithin } from "./log-look.ts";

/** Messages that are followed one by one: each is a request, and comes whole. */
const FEW = 64;
/** How long a cursor may take to hear of what the server that leads it has: milliseconds, on a busy machine. */
export const HEARING = 20;

/** Messages above `state.delivered` in these segments; `bound`: at most so many. */
export async function tally(
  bus: Bus,
  state: CursorState,
  segments: readonly Segment[],
  isPlain: boolean,
): Promise<{ readonly messages: number; readonly bound: boolean }> {
  const few = isPlain && state.pending > FEW ? undefined : await countWithin(bus, segments, FEW);
  if (few !== undefined) return { messages: few, bound: false };
  await bus.abreast(state.queue);
  await sleep(HEARING);
  const pending = (await bus.cursorState(state.queue))?.pending ?? 0;
  if (isPlain) return { messages: pending, bound: false };
  const rest = outside(segments, state.filters);
  const beside = rest === undefined ? undefined : await countWithin(bus, rest, FEW);
  return { messages: pending - Math.min(pending, beside ?? 0), bound: beside === undefined };
}

/** Where the cursor's filters are wider than the intervals; undefined where that is not a matter of whole filters. */
function outside(segments: readonly Segment[], filters: readonly string[]): Segment[] | undefined {
  // Filters that overlap in part count a message twice.
  if (!isDisjoint(filters)) return undefined;
  const those = new Set(filters);
  const rest: Segment[] = [];
  for (const { above, until, filters: own } of segments) {
    if (!own.every((filter) => those.has(filter))) return undefined;
    rest.push({ above, until, filters: filters.filter((filter) => !own.includes(filter)) });
  }
  return rest;
}
