/**
 * Looks into the log itself: whether it has what a cursor says it has not.
 *
 * Used by: count, get, purge, chores. Separate because a cursor's numbers and a no-wait ask may be a little behind a
 * PubAck (measured on a busy machine: 1 in 30 states, 1 in 300 asks), and this is what they are checked against.
 */
import type { Bus } from "./bus.ts";
import type { Segment } from "./interval-segments.ts";

/** Filters asked for at once; a queue with a thousand bindings must not flood the bus. */
const AT_ONCE = 16;

/** Whether a message above `above`, and not above `until`, matches one of these filters. */
export function anyAbove(
  bus: Bus,
  filters: readonly string[],
  above: number,
  until: number | undefined,
): Promise<boolean> {
  return anyWithin(bus, [{ above, until, filters }]);
}

/**
 * Whether a message, not above `end`, lies in one of these segments (ascending) and matches a filter of it. About one
 * request a filter, however many segments there are: each filter is followed from message to message, over the
 * segments that do not have it.
 */
export async function anyWithin(
  bus: Bus,
  segments: readonly Segment[],
  end: number = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const filters = [...new Set(segments.flatMap((segment) => segment.filters))];
  const start = segments[0]?.above ?? end;
  if (filters.length === 0 || start >= end) return false;
  if (filters.length > 1 && (await bus.lastSequence()) <= start) return false;
  for (let at = 0; at < filters.length; at += AT_ONCE) {
    const some = filters.slice(at, at + AT_ONCE).map((filter) => isAnywhere(bus, filter, segments, end));
    if ((await Promise.all(some)).includes(true)) return true;
  }
  return false;
}

/**
 * How many messages lie in these segments (ascending) and match a filter of theirs, as the log's leader has it; undefined
 * where they are more than `most`. A request a message, and one a filter.
 */
export async function countWithin(bus: Bus, segments: readonly Segment[], most: number): Promise<number | undefined> {
  const filters = [...new Set(segments.flatMap((segment) => segment.filters))];
  // Filters may overlap in part.
  const found = new Set<number>();
  for (let at = 0; at < filters.length && found.size <= most; at += AT_ONCE) {
    const some = filters.slice(at, at + AT_ONCE);
    await Promise.all(some.map((filter) => follow(bus, filter, segments, found, most)));
  }
  return found.size > most ? undefined : found.size;
}

async function follow(
  bus: Bus,
  filter: string,
  segments: readonly Segment[],
  found: Set<number>,
  most: number,
): Promise<void> {
  let at = 0;
  for (const { above, until = Number.POSITIVE_INFINITY, filters } of segments) {
    if (!filters.includes(filter) || until <= at) continue;
    for (at = Math.max(above, at); found.size <= most; ) {
      const sequence = await bus.nextAbove(filter, at);
      if (sequence === undefined) return;
      // Nothing lies before it.
      at = sequence > until ? sequence - 1 : sequence;
      if (sequence > until) break;
      found.add(sequence);
    }
  }
}

async function isAnywhere(bus: Bus, filter: string, segments: readonly Segment[], end: number): Promise<boolean> {
  let from = 0;
  for (const [place, { above, until = Number.POSITIVE_INFINITY, filters }] of segments.entries()) {
    // A message that was found further on: nothing lies before it.
    if (!filters.includes(filter) || until <= from) continue;
    const sequence = await bus.nextAbove(filter, Math.max(above, from));
    if (sequence === undefined || sequence > end) return false;
    if (sequence <= until) return true;
    from = sequence - 1;
    if (place === segments.length - 1) return false;
  }
  return false;
}
