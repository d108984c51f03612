/**
 * A message of our own in the log, past the publisher, which would hold it while the log has no leader.
 *
 * Used by: bus.ts. Separate because the publisher's promise, never to wait and never to lose, is the wrong one for it.
 */
import type { Permit } from "@amqp/topology";
import type { PublishOutcome } from "../core/bus.ts";
import { BusError, Code } from "./errors.ts";
import type { Requests } from "./requests.ts";

const TIMEOUT_MS = 2_500;

/** Throws {@link BusError} where the bus does not say what became of it, and what `permit` throws. */
export async function storeEmpty(requests: Requests, subject: string, permit: Permit): Promise<PublishOutcome> {
  try {
    await requests.publish(subject, TIMEOUT_MS, permit);
    return "stored";
  } catch (error) {
    if (!(error instanceof BusError) || error.timeout) throw error;
    return error.code === Code.forbidden ? "denied" : "refused";
  }
}
