/**
 * A look into the log itself.
 *
 * Responsibilities: whether a message lies above a sequence, as the stream has it and not as a cursor counts it.
 * Used by: bus.ts. Separate because it reads messages where the files beside it read states.
 */
import { hasCode } from "./errors.ts";
import type { Requests } from "./requests.ts";

const NO_MESSAGE = 10037;

/** Filters asked for at once; a queue with a thousand bindings must not flood the bus. */
const AT_ONCE = 16;

/**
 * True where a message above `above` matches one of the filters: one request a filter, and none where the log ends at
 * `above` (`lastSequence` says where).
 */
export async function anyAbove(
  requests: Requests,
  stream: string,
  filters: readonly string[],
  above: number,
  lastSequence: () => Promise<number>,
): Promise<boolean> {
  if (filters.length > 1 && (await lastSequence()) <= above) return false;
  for (let at = 0; at < filters.length; at += AT_ONCE) {
    const some = filters.slice(at, at + AT_ONCE).map((filter) => isAbove(requests, stream, filter, above));
    if ((await Promise.all(some)).includes(true)) return true;
  }
  return false;
}

async function isAbove(requests: Requests, stream: string, filter: string, above: number): Promise<boolean> {
  try {
    await requests.read(`STREAM.MSG.GET.${stream}`, { seq: above + 1, next_by_subj: filter });
    return true;
  } catch (error) {
    if (hasCode(error, NO_MESSAGE)) return false;
    throw error;
  }
}
