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
 * True where a message above `above`, and not above `until`, matches one of the filters: one request a filter, and none
 * where the log ends at `above` (`lastSequence` says where).
 */
export async function anyAbove(
  requests: Requests,
  stream: string,
  filters: readonly string[],
  { above, until = Number.POSITIVE_INFINITY }: { readonly above: number; readonly until?: number | undefined },
  lastSequence: () => Promise<number>,
): Promise<boolean> {
  if (until <= above) return false;
  if (filters.length > 1 && (await lastSequence()) <= above) return false;
  for (let at = 0; at < filters.length; at += AT_ONCE) {
    const some = filters.slice(at, at + AT_ONCE).map((filter) => isBetween(requests, stream, filter, above, until));
    if ((await Promise.all(some)).includes(true)) return true;
  }
  return false;
}

async function isBetween(
  requests: Requests,
  stream: string,
  filter: string,
  above: number,
  until: number,
): Promise<boolean> {
  try {
    const next = { seq: above + 1, next_by_subj: filter };
    const { message } = await requests.read<{ message: { seq: number } }>(`STREAM.MSG.GET.${stream}`, next);
    return message.seq <= until;
  } catch (error) {
    if (hasCode(error, NO_MESSAGE)) return false;
    throw error;
  }
}
