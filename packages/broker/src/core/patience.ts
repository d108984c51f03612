/**
 * How long a verb waits for a bus that is away, or for a lease that lapsed with it.
 *
 * Used by: get, purge, lag, lead. Separate because a client that asks meanwhile is answered late rather than refused, and
 * equally late whatever it asks.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BusAway } from "./bus.ts";
import type { Desk } from "./desk.ts";

/**
 * Milliseconds: a lease, a reconciliation and some; or an election among the nats-servers (5 to 9 s, measured), new leases
 * and a reconciliation.
 */
export const PATIENCE = 18_000;
const PAUSE = 50;
/** How often a verb may be interrupted: by an election among the bus's servers, a restart of it, a lapsed lease. */
export const TRIES = 4;

/**
 * Resolves when this process may read the queue (the bus is there, and the lease is held) and is `ready` otherwise; throws
 * {@link BusAway} where that takes too long.
 */
export async function untilServing(desk: Desk, ready: () => boolean = () => true): Promise<void> {
  const serves = (): boolean => desk.bus.present && desk.options.holdsLease() && ready();
  for (const end = performance.now() + PATIENCE; !serves(); await sleep(PAUSE)) {
    if (performance.now() > end)
      throw new BusAway(`queue '${desk.name}' cannot be read: the bus, or the lease on it, is gone`);
  }
}
