/**
 * What goes wrong with the bus, as values the core and the gateway can tell apart.
 *
 * Responsibilities: the two error classes of nats/ and the JetStream error codes that are read by name.
 * Used by: every file of nats/, core (BusError), the gateway's boot (BootError).
 * Separate because the core may catch these without knowing the NATS client.
 */
import type { BusErrorShape } from "../core/bus.ts";

/** JetStream's `err_code` values (and statuses) that change what is done. */
export const Code = {
  /** The server refused the publish or the subscription itself. */
  forbidden: 403,
  /** No server answered for that subject: JetStream is off, or the asset has no leader. */
  noResponders: 503,
  accountResources: 10002,
  clusterNotAvailable: 10008,
  clusterNoLeader: 10009,
  consumerNotFound: 10014,
  insufficientResources: 10023,
  memoryResources: 10028,
  notEnabledForAccount: 10039,
  storageResources: 10047,
  streamNameInUse: 10058,
  streamNotFound: 10059,
  subjectsOverlap: 10065,
  notEnabled: 10076,
  storeFailed: 10077,
  consumerExists: 10148,
  consumerDoesNotExist: 10149,
} as const;

/** The bus refused a verb or stayed silent. `timeout`: whether it was done is unknown; read before going on. */
export class BusError extends Error implements BusErrorShape {
  override readonly name: string = "BusError";
  /** JetStream's `err_code`, or 503 where nobody answered, 0 where nothing was said. */
  readonly code: number;
  readonly timeout: boolean;

  constructor(
    message: string,
    details: { readonly code: number; readonly timeout: boolean; readonly cause?: unknown },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.timeout = details.timeout;
  }
}

/** The bus cannot serve this broker. The message is one line and names the remedy; boot prints it and ends (HIP §5). */
export class BootError extends Error {
  override readonly name: string = "BootError";
}

/** Whether that code says that nobody leads just now: nothing happened. */
export function isUnled(code: unknown): boolean {
  return code === Code.clusterNotAvailable || code === Code.clusterNoLeader;
}

/** True for a {@link BusError} with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly number[]): boolean {
  return error instanceof BusError && codes.includes(error.code);
}
