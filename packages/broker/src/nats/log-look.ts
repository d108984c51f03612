/**
 * A look into the log itself.
 *
 * Responsibilities: which message comes next on a filter, as the stream has it and not as a cursor counts it.
 * Used by: bus.ts. Separate because it reads messages where the files beside it read states.
 */
import { hasCode } from "./errors.ts";
import type { Requests } from "./requests.ts";

const NO_MESSAGE = 10037;

/** The sequence of the first message above `above` on this filter; undefined where there is none. */
export async function nextAbove(
  requests: Requests,
  stream: string,
  filter: string,
  above: number,
): Promise<number | undefined> {
  try {
    const next = { seq: above + 1, next_by_subj: filter };
    const { message } = await requests.read<{ message: { seq: number } }>(`STREAM.MSG.GET.${stream}`, next);
    return message.seq;
  } catch (error) {
    if (hasCode(error, NO_MESSAGE)) return undefined;
    throw error;
  }
}
