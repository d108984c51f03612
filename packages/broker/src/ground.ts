/**
 * A stream and its bucket, opened with one login to the bus: the ground that places are on.
 *
 * Responsibilities: what is the default of each option; bus → stream → bucket, each step failing closed (HIP §5).
 * Used by: open, open-accounts. Separate because it is the same whoever may come in, and what a place is needs no NATS.
 */
import { openBucket } from "@amqp/topology";
import { ROOT } from "@amqp/translator";
import { BusListeners } from "./core/bus-listeners.ts";
import type { Log } from "./core/log.ts";
import { type JetStreamBus, openBus } from "./nats/bus.ts";
import type { BusOptions } from "./nats/bus-options.ts";
import type { Connections } from "./nats/links.ts";
import { patiently } from "./nats/patiently.ts";
import { NatsPeers } from "./nats/peers.ts";
import { orClose, type Place, type PlaceOptions } from "./place.ts";

export interface Ground {
  /** All of it. */
  readonly place: Place & { readonly bus: JetStreamBus };
  /** As its bus was opened: for another login's bus on the same stream. */
  readonly kept: Omit<BusOptions, keyof Connections | "listener" | "denied">;
  readonly bucketName: string;
  /** Other replicas on it; on a part of it where `within` names one. */
  peers(within?: string): NatsPeers;
}

/** @param lose told when the topology cannot be followed any more */
export async function openGround(
  options: PlaceOptions,
  { publishing, delivering }: Omit<Connections, "api">,
  log: Log,
  lose: (error: Error) => void,
): Promise<Ground> {
  const { stream = "AMQP", bucket: bucketName = "amqp", busTimeout = 30_000 } = options;
  const { replicas, maxBytes, domain, unconfirmed } = options;
  const listener = new BusListeners();
  const kept = {
    stream,
    root: ROOT,
    bucket: bucketName,
    replicas,
    maxBytes,
    domain,
    unconfirmed,
    busTimeout,
    log,
    traffic: { seen: false },
  };
  const bus = await openBus({ publishing, delivering, ...kept, listener });
  const opening = patiently(() => openBucket(publishing, { name: bucketName, replicas, domain }), busTimeout, log);
  const bucket = await orClose(opening, bus);
  const peers = (within?: string): NatsPeers => new NatsPeers(publishing, bucketName, within);
  const place = {
    root: ROOT,
    bus,
    bucket,
    peers: peers(),
    log,
    lost: lose,
    listener,
    busTimeout,
  };
  return { place, kept, bucketName, peers };
}
