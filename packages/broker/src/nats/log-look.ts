/**
 * A look into the log itself.
 *
 * Responsibilities: whether a message lies above a sequence, as the stream has it and not as a cursor counts it.
 * Used by: bus.ts. Separate because it reads messages where the files beside it read states.
 */
import { hasCode } from "./errors.ts";
import type { Requests } from "./requests.ts";

const NO_MESSAGE = 10037;

/** True where a message above `above` matches one of the filters. One request a filter, all at once. */
export async function anyAbove(
  requests: Requests,
  stream: string,
  filters: readonly string[],
  above: number,
): Promise<boolean> {
  const found = await Promise.all(filters.map((filter) => isAbove(requests, stream, filter, above)));
  return found.includes(true);
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
