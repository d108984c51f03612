/**
 * Opening on a bus whose servers are about to elect a leader, or have just been started.
 *
 * Responsibilities: asking again what was not answered, for as long as clients that are connected would wait. Used by:
 * ground (the bucket), place (a broker). Separate because it is the same for each step of opening; every one of them leaves
 * nothing behind where it fails.
 */
import { errors } from "@nats-io/nats-core";
import { isBusError } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import { isUnled } from "./errors.ts";

const PAUSE = 500;

/** Rejects with what the last attempt did: at once where that is no silence. */
export async function patiently<T>(open: () => Promise<T>, milliseconds: number, log: Log): Promise<T> {
  for (let end = performance.now() + milliseconds, tries = 1; ; tries++) {
    try {
      return await open();
    } catch (error) {
      if (!isSilence(error) || performance.now() + PAUSE > end) throw error;
      if (tries === 1) log.warn({ err: error }, "the bus does not answer yet; trying again (AMQP_BUS_TIMEOUT)");
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

function isSilence(error: unknown): boolean {
  if (isBusError(error)) return error.timeout;
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause].some(
    (each) =>
      each instanceof errors.TimeoutError ||
      each instanceof errors.NoRespondersError ||
      isUnled((each as { readonly code?: unknown } | undefined)?.code),
  );
}
