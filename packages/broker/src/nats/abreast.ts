/**
 * Waiting until the server that leads a cursor has what the log's leader has.
 *
 * Responsibilities: who leads each of the two, and how far the one is behind the other. Used by: bus.ts. Separate because
 * it is what a cluster needs so that a cursor's own numbers count, where one server has but one log.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { PATIENCE } from "../core/patience.ts";
import { Code, hasCode } from "./errors.ts";
import type { Requests } from "./requests.ts";

const LONGEST_PAUSE_MS = 100;

interface Led {
  readonly cluster?: { readonly leader?: string };
}

interface LogInfo {
  readonly state: { readonly last_seq: number };
  readonly cluster?: { readonly leader?: string; readonly replicas?: readonly Member[] };
}

/** As the log's leader sees it. */
interface Member {
  readonly name: string;
  readonly offline?: boolean;
  /** What it has not said to have of the log; left out where that is nothing. */
  readonly lag?: number;
}

/**
 * Resolves when the cursor's leader has been handed what was in the log at this call, or after it was given as long as an
 * election takes. It knows a moment later that all of that is confirmed.
 */
export async function untilAbreast(requests: Requests, stream: string, cursor: string): Promise<void> {
  let first: number | undefined;
  for (let pause = 1, end = Date.now() + PATIENCE; Date.now() < end; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const [log, led] = await Promise.all([
      requests.read<LogInfo>(`STREAM.INFO.${stream}`),
      requests.read<Led>(`CONSUMER.INFO.${stream}.${cursor}`).catch(unlessGone),
    ]);
    if (led === undefined) return;
    const { cluster } = led;
    first ??= log.state.last_seq;
    // What came since need not be there: under load there is always something on its way.
    if (behind(log, cluster?.leader) <= log.state.last_seq - first) return;
    await sleep(pause);
  }
}

/** The queue went meanwhile: whoever reads it next finds that. */
function unlessGone(error: unknown): undefined {
  if (!hasCode(error, Code.consumerNotFound)) throw error;
}

function behind({ cluster }: LogInfo, leader: string | undefined): number {
  // One server, or one copy.
  if (cluster === undefined || leader === undefined) return cluster === undefined ? 0 : Number.POSITIVE_INFINITY;
  if (leader === cluster.leader) return 0;
  const member = cluster.replicas?.find(({ name }) => name === leader);
  return member === undefined || member.offline === true ? Number.POSITIVE_INFINITY : (member.lag ?? 0);
}
