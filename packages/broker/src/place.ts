/**
 * A place on the bus where a broker is opened: all of a stream and a bucket, a namespace's part of them, or one login's
 * seat beside others.
 *
 * Responsibilities: what every opening does in the same way. Used by: open, open-accounts. Separate because they differ
 * in who may come in, and not in what a broker needs.
 */
import { peekProperty } from "@amqp/codec";
import type { Counters } from "./amqp091/census.ts";
import { Broker } from "./core/broker.ts";
import { type BusErrorShape, isBusError } from "./core/bus.ts";
import type { BusListeners } from "./core/bus-listeners.ts";
import type { Doorkeeper } from "./core/doorkeeper.ts";
import { Health } from "./core/health.ts";
import type { Log } from "./core/log.ts";
import type { ReplicaOptions } from "./core/replica.ts";
import { BootError } from "./nats/errors.ts";
import { patiently } from "./nats/patiently.ts";
import { type Listening, type ListenOptions, Server } from "./server.ts";

/** How stream and bucket are kept, and how long the bus may be away. */
export interface PlaceOptions {
  /** The stream's name; `AMQP` by default. */
  readonly stream?: string;
  /** The key-value bucket's name; `amqp` by default. */
  readonly bucket?: string;
  /** Replicas of stream and bucket on a NATS cluster; by default 1 of new ones, and existing ones keep theirs. */
  readonly replicas?: number;
  /** Octets that the stream may take; unlimited by default. When full, publishes are refused, nothing is dropped. */
  readonly maxBytes?: number;
  readonly domain?: string;
  /** Milliseconds that the bus may be away before connections are closed; 30,000 by default. */
  readonly busTimeout?: number;
  /** Octets of publishes that the bus has not confirmed, above which publishers are not read; 32 MiB by default. */
  readonly unconfirmed?: number;
  readonly log: Log;
}

export interface BrokerHandle {
  /** Opens a port; rejects where it is taken. */
  listen(options: ListenOptions): Promise<Listening>;
  /** What its ports have seen and refused, since it was opened; plain numbers, to be shown wherever one likes. */
  counters(): Counters;
  /** Stops accepting, closes every connection with 320 and `reason`, requeues what they held, leaves the bus clean. */
  close(reason?: string): Promise<void>;
  /**
   * Resolves when the topology cannot be followed any more (its bucket was deleted or set back): clients are disconnected
   * and the ports closed by then. Close it, and open another one.
   */
  readonly lost: Promise<Error>;
}

export interface Place extends Omit<ReplicaOptions, "health" | "expirationOf"> {
  readonly listener: BusListeners;
  /** What stands before its queues' names in cursor names; nothing where it is the whole bus. */
  readonly cursors?: string;
  readonly busTimeout: number;
}

/** A broker that is told of the bus for as long as it is there. */
export interface Placed {
  readonly broker: Broker;
  readonly health: Health;
  /** Never rejects. */
  close(): Promise<void>;
}

export async function openPlace(place: Place): Promise<Placed> {
  const { listener, log, busTimeout, cursors } = place;
  const health = new Health(log, busTimeout);
  listener.join(health, cursors);
  const end = (): void => listener.leave(health);
  const broker = await patiently(() => openOnce(place, health), busTimeout, log).catch((error: unknown) => {
    end();
    throw error;
  });
  return {
    broker,
    health,
    close: async () => {
      await broker.close();
      end();
    },
  };
}

/** One attempt: what it comes to hear of the topology's loss before it is open is its failure. */
async function openOnce(place: Place, health: Health): Promise<Broker> {
  let isOpen = false;
  let lost: Error | undefined;
  const broker = await Broker.open({
    ...place,
    health,
    expirationOf,
    lost: (error) => {
      if (isOpen) place.lost(error);
      lost = error;
    },
  });
  isOpen = true;
  if (lost === undefined) return broker;
  await broker.close();
  throw lost;
}

/** For an operator who starts it, in one line: a client is told of a silent bus. */
export async function booting<T>(opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    throw isBusError(error) && error.timeout ? toBootError(error) : error;
  }
}

/** Where it does not open, what it was to stand on is closed: nothing of it goes on, or is warned of when it ends. */
export async function orClose<T>(opening: Promise<T>, bus: { close(): Promise<void> }): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    await bus.close();
    throw error;
  }
}

/** The bus was there a moment ago, when the ground was opened: it went away, or is slower than leases are. */
function toBootError(error: BusErrorShape): BootError {
  const what = error instanceof Error ? error.message : "the bus does not answer";
  const remedy = "see the log of the replica that leads, and whether the bus answers within a second; then start again";
  return new BootError(`${what}: ${remedy}`, { cause: error });
}

/** A promise of what cannot be served any more, and who is told of it. */
export function losing(): { readonly lost: Promise<Error>; readonly lose: (error: Error) => void } {
  let lose: (error: Error) => void = () => undefined;
  const lost = new Promise<Error>((resolve) => {
    lose = resolve;
  });
  return { lost, lose };
}

/** The ports behind that doorkeeper; `close` closes what is behind them. */
export function handleOf(
  doorkeeper: Doorkeeper,
  log: Log,
  lost: Promise<Error>,
  close: () => Promise<void>,
): BrokerHandle {
  const server = new Server(doorkeeper, log);
  return {
    listen: (where) => server.listen(where),
    counters: () => server.counters(),
    lost,
    close: async (reason = "the broker is stopping") => {
      await server.close(reason);
      await close();
    },
  };
}

/** Says of every line whose it is. */
export function logOf(log: Log, whose: object): Log {
  return {
    debug: (fields, text) => log.debug({ ...whose, ...fields }, text),
    info: (fields, text) => log.info({ ...whose, ...fields }, text),
    warn: (fields, text) => log.warn({ ...whose, ...fields }, text),
    error: (fields, text) => log.error({ ...whose, ...fields }, text),
  };
}

/** The `expiration` property in milliseconds; checked at publish, so what is no number came from elsewhere. */
function expirationOf(properties: Uint8Array): number | undefined {
  let text: string | undefined;
  try {
    text = peekProperty(properties, "expiration");
  } catch {
    return undefined; // a native publisher's, and no properties at all
  }
  if (text === undefined) return undefined;
  const milliseconds = Number(text);
  return Number.isFinite(milliseconds) && milliseconds >= 0 ? milliseconds : undefined;
}
