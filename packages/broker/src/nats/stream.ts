/**
 * The stream that the log is: made, checked or refused at boot.
 *
 * Responsibilities: server version, JetStream there, permission, the stream's settings; the log's state later.
 * Used by: bus.ts. Separate because everything here fails closed with one line that names the remedy (HIP §5).
 */
import type { NatsConnection } from "@nats-io/nats-core";
import type { LogState } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import { BootError, BusError, Code, hasCode } from "./errors.ts";
import type { Requests } from "./requests.ts";

export interface StreamOptions {
  readonly stream: string;
  readonly root: string;
  /** Undefined: 1 for a new stream, and an existing one keeps what it has. */
  readonly replicas: number | undefined;
  /** Undefined: unbounded for a new stream, and an existing one keeps what it has. */
  readonly maxBytes: number | undefined;
}

type Setting = string | number | boolean | readonly string[];

interface StreamConfig {
  readonly name?: string;
  readonly description?: string;
  readonly subjects?: readonly string[];
  readonly storage?: string;
  readonly retention?: string;
  readonly discard?: string;
  readonly max_consumers?: number;
  readonly max_msgs?: number;
  readonly max_bytes?: number;
  readonly max_age?: number;
  readonly max_msgs_per_subject?: number;
  readonly max_msg_size?: number;
  readonly num_replicas?: number;
  readonly no_ack?: boolean;
  readonly sealed?: boolean;
  readonly mirror?: unknown;
}

interface StreamInfo {
  readonly config: StreamConfig;
  readonly state: {
    readonly messages: number;
    readonly bytes: number;
    readonly first_seq: number;
    readonly consumer_count: number;
    readonly last_seq: number;
  };
}

/** Filters that overlap in part deliver once from there on (design §3). */
const MINIMUM = [2, 12, 5] as const;
/** The server's own default is 1,000, and -1 does not lift it (design §5). */
const MAX_CONSUMERS = 100_000;
/** With the pulls' 40 MiB, more than this may exceed the 64 MiB at which a server closes a connection as too slow. */
const MOST_PAYLOAD: number = 24 * 1024 * 1024;
/** A server that has just started may still be opening its store. */
const STARTUP_MS = 3_000;

/** Throws {@link BootError} where the server cannot serve. */
export async function checkServer(connection: NatsConnection, requests: Requests, log: Log): Promise<void> {
  const { info } = connection;
  const version = info?.version ?? "unknown";
  if (!isAtLeast(version, MINIMUM)) {
    throw new BootError(
      `nats-server ${version} is too old: 2.12.5 is the least; upgrade it or set NATS_URL to another`,
    );
  }
  if (info?.headers !== true) {
    throw new BootError("nats-server refuses headers: remove `no_header_support` from its configuration");
  }
  if (info.max_payload > MOST_PAYLOAD) {
    log.warn({}, `max_payload of ${info.max_payload} octets: raise nats-server's max_pending above 40 MiB plus that`);
  }
  try {
    await requests.read("INFO", undefined, STARTUP_MS);
  } catch (error) {
    if (hasCode(error, Code.notEnabledForAccount)) {
      throw new BootError(
        "JetStream is off for this NATS account: enable it there, or use another account's credentials",
      );
    }
    if (hasCode(error, Code.noResponders, Code.notEnabled)) {
      throw new BootError(
        "JetStream is off on this nats-server: start it with `-js`, or set NATS_JS_DOMAIN to its domain",
      );
    }
    throw toBootError("JetStream", error);
  }
}

/**
 * Opens or makes the stream; resolves to whether several servers keep it. Throws {@link BootError} where an existing one is
 * not what the log must be.
 */
export async function openStream(requests: Requests, options: StreamOptions, log: Log): Promise<boolean> {
  await openOrMake(requests, options, log);
  return Number((await readInfo(requests, options.stream))?.config.num_replicas ?? 1) > 1;
}

async function openOrMake(requests: Requests, options: StreamOptions, log: Log): Promise<void> {
  const { stream } = options;
  try {
    const present = await readInfo(requests, stream);
    if (present !== undefined) return await adapt(requests, options, present.config, log);
    await requests.write(`STREAM.CREATE.${stream}`, toConfig(options));
    log.info({}, `bus: made the stream ${stream}`);
  } catch (error) {
    if (hasCode(error, Code.subjectsOverlap)) {
      throw new BootError(
        `another stream already takes part of ${options.root}.>: remove those subjects from it (nats stream ls --subjects)`,
      );
    }
    if (!hasCode(error, Code.streamNameInUse)) throw toBootError(`stream ${stream}`, error);
    // Somebody else made it meanwhile.
    const present = await readInfo(requests, stream);
    if (present !== undefined) await adapt(requests, options, present.config, log);
  }
}

export async function readLogState(requests: Requests, stream: string): Promise<LogState> {
  const { state } = await requests.read<StreamInfo>(`STREAM.INFO.${stream}`);
  return {
    messages: state.messages,
    bytes: state.bytes,
    firstSequence: state.first_seq,
    lastSequence: state.last_seq,
    consumers: state.consumer_count,
  };
}

/** Octets that still fit in; infinite for an unbounded stream. */
export async function readRoom(requests: Requests, stream: string): Promise<{ free: number; bound: number }> {
  const { config, state } = await requests.read<StreamInfo>(`STREAM.INFO.${stream}`);
  const bound = Number(config.max_bytes ?? -1);
  return bound <= 0 ? { free: Number.POSITIVE_INFINITY, bound: 0 } : { free: bound - state.bytes, bound };
}

async function readInfo(requests: Requests, stream: string): Promise<StreamInfo | undefined> {
  try {
    return await requests.read<StreamInfo>(`STREAM.INFO.${stream}`);
  } catch (error) {
    if (hasCode(error, Code.streamNotFound)) return undefined;
    throw error;
  }
}

function toConfig(options: StreamOptions): StreamConfig {
  return {
    name: options.stream,
    description: "AMQP 0-9-1: everything published; queues are consumers of it (HIP-1326)",
    subjects: [`${options.root}.>`],
    storage: "file",
    retention: "interest",
    discard: "new",
    max_consumers: MAX_CONSUMERS,
    max_msgs: -1,
    max_bytes: options.maxBytes ?? -1,
    max_age: 0,
    max_msgs_per_subject: -1,
    max_msg_size: -1,
    num_replicas: options.replicas ?? 1,
  };
}

/** What must be as it is: anything else would lose or misroute messages. */
const FOREIGN = ["subjects", "retention", "discard"] as const;
/** What is set right where it differs: each of these could drop, expire or refuse queued messages. */
const ADAPTED = {
  max_msgs: -1,
  max_age: 0,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  no_ack: false,
} as const;

async function adapt(requests: Requests, options: StreamOptions, present: StreamConfig, log: Log): Promise<void> {
  const { stream } = options;
  const wanted = toConfig(options);
  const foreign = FOREIGN.filter((name) => !same(present[name], wanted[name]));
  if (foreign.length > 0) {
    const said = foreign.map((name) => `${name} is ${show(present[name])}, not ${show(wanted[name])}`).join("; ");
    throw new BootError(
      `stream ${stream} belongs to something else (${said}): set AMQP_STREAM to another name, or delete the stream`,
    );
  }
  if (present.sealed === true || present.mirror !== undefined) {
    throw new BootError(`stream ${stream} takes no publishes (sealed or a mirror): set AMQP_STREAM to another name`);
  }
  const changes: [keyof StreamConfig, Setting][] = [];
  for (const [name, value] of Object.entries(ADAPTED) as [keyof typeof ADAPTED, number | boolean][]) {
    // The server leaves out what is zero or false.
    if ((present[name] ?? value) !== value) changes.push([name, value]);
  }
  const { maxBytes, replicas } = options;
  if (maxBytes !== undefined && present.max_bytes !== maxBytes) changes.push(["max_bytes", maxBytes]);
  const had = present.num_replicas ?? 1;
  if (replicas !== undefined && replicas > had) changes.push(["num_replicas", replicas]);
  if (replicas !== undefined && replicas < had) log.warn({}, `stream ${stream}: has ${had} replicas and keeps them`);
  if ((present.max_consumers ?? -1) < MAX_CONSUMERS) changes.push(["max_consumers", MAX_CONSUMERS]);
  if (present.storage !== "file")
    log.warn({}, `stream ${stream} is kept in memory: a restart of the bus empties every queue`);
  // One by one, so that a setting which cannot be changed does not keep the others back.
  let config = present;
  for (const [name, value] of changes) {
    try {
      config = (await requests.write<StreamInfo>(`STREAM.UPDATE.${stream}`, { ...config, [name]: value })).config;
      log.info({}, `stream ${stream}: ${name} changed from ${show(present[name])} to ${show(value)}`);
    } catch (error) {
      if (!(error instanceof BusError) || error.timeout) throw error;
      log.warn(
        {},
        `stream ${stream}: ${name} is ${show(present[name])}, wanted ${show(value)}, and stays: ${error.message}`,
      );
    }
  }
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function show(value: unknown): string {
  return String(value ?? "unset");
}

/** One line that names the remedy. */
export function toBootError(what: string, error: unknown): Error {
  if (!(error instanceof BusError)) return error instanceof Error ? error : new Error(String(error));
  if (error.code === Code.forbidden) {
    return new BootError(
      `no permission for ${what} on the bus (${error.message}): allow $JS.API.>, $JS.ACK.>, _INBOX.> and amqp.$keeper`,
    );
  }
  if (error.timeout)
    return new BootError(`${what}: the bus does not answer; check NATS_URL and that JetStream has a leader`);
  if (hasCode(error, Code.storageResources, Code.insufficientResources, Code.accountResources)) {
    return new BootError(`${what}: ${error.message}; give JetStream more storage or lower AMQP_STREAM_MAX_BYTES`);
  }
  return new BootError(`${what}: ${error.message} (${error.code}); correct AMQP_STREAM_REPLICAS or the bus's limits`);
}

function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split(/[.-]/).map(Number);
  for (let i = 0; i < least.length; i++) {
    const part = parts[i] ?? 0;
    const wanted = least[i] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}
