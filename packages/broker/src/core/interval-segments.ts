/**
 * The stretches of the log above a point in which a queue's bindings do not change.
 *
 * Responsibilities: intervals in, stretches with the filters that hold in each out. Used by: count, log-look. Separate
 * because it is pure.
 */
import { antichain } from "@amqp/translator";

/** A filter that holds for sequences above `from`, up to and including `until`. */
export interface FilterInterval {
  readonly filters: readonly string[];
  readonly from: number;
  readonly until?: number | undefined;
}

/** Sequences above `above`, up to and including `until` (absent: without end). */
export interface Segment {
  readonly above: number;
  readonly until: number | undefined;
  /** An antichain; empty where nothing holds. */
  readonly filters: readonly string[];
}

/** The segments above `start`, ascending and without gaps; the last one has no end. */
export function segmentsAbove(start: number, intervals: readonly FilterInterval[]): Segment[] {
  const edges = new Set<number>();
  for (const { from, until } of intervals) {
    if (until !== undefined && until <= from) continue;
    if (from > start) edges.add(from);
    if (until !== undefined && until > start) edges.add(until);
  }
  const ascending = [...edges].sort((a, b) => a - b);
  return [start, ...ascending].map((above, place) => {
    const filters: string[] = [];
    for (const interval of intervals) {
      const holds = interval.from <= above && (interval.until === undefined || interval.until > above);
      if (holds) filters.push(...interval.filters);
    }
    return { above, until: ascending[place], filters: antichain(filters) };
  });
}
