/**
 * The bucket on JetStream's key-value store: opened or made, read and written.
 *
 * Used by: whoever composes a broker, with a connection of his own. Separate because only this file and those of nats/
 * know the NATS client. Writes are raw publishes: the client's `update` sets no time to live, and its `create` reads a
 * possibly stale replica.
 */
import { type JetStreamManager, jetstream, StorageType, type StreamInfo } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers, type MsgHdrs, type NatsConnection, nanos } from "@nats-io/nats-core";
import type { Bucket, BucketListener, Entry, Permit, Watch, Written } from "./bucket.ts";
import { ApiError, ERROR, isGoneBlock, type RequestLimits, request } from "./nats/api.ts";
import { BucketWatch } from "./nats/watch.ts";
import { Window } from "./nats/window.ts";

export interface BucketOptions {
  /** The bucket's name: `amqp` if not given. */
  readonly name?: string;
  /** Copies in a NATS cluster; 1 for a new bucket if not given. An existing bucket is changed only where it is given. */
  readonly replicas?: number | undefined;
  /** The JetStream domain, where it is not the connection's own. */
  readonly domain?: string | undefined;
  /** How long a request waits for its answer once it was sent, milliseconds; 2,000 if not given. */
  readonly timeout?: number;
}

/**
 * How long the marker of a deletion or an expiry stays, milliseconds. Longer than any connection survives in silence: a
 * watch that sleeps past it is cut off by the server and replays.
 */
const MARKER_TTL = 60 * 60 * 1_000;

const DEFAULT_TIMEOUT = 2_000;

/** Writes under way at once; the refreshes of leases are not counted and wait for nobody. */
const WRITES = 128;

/**
 * Opens the topology bucket, or makes it: file storage, one revision a key, keys that can expire and say so. An existing
 * one without expiry is updated in place. Rejects with an error that names the remedy where the bucket cannot be used.
 */
export async function openBucket(connection: NatsConnection, options: BucketOptions = {}): Promise<Bucket> {
  const { name = "amqp", replicas, domain, timeout = DEFAULT_TIMEOUT } = options;
  const client = jetstream(connection, { timeout, ...(domain === undefined ? {} : { domain }) });
  const manager = await client.jetstreamManager();
  const settings = { history: 1, markerTTL: MARKER_TTL, storage: StorageType.File, replicas: replicas ?? 1 };
  await new Kvm(client).create(name, settings);
  await fit(manager, name, replicas);
  return new KvBucket(connection, manager, client.apiPrefix, name, timeout);
}

/** Makes an existing bucket what the topology needs, or says why it cannot be. */
async function fit(manager: JetStreamManager, name: string, replicas: number | undefined): Promise<void> {
  const { config } = await manager.streams.info(`KV_${name}`);
  const refuse = (problem: string): Error =>
    new Error(`the bucket '${name}' ${problem}; remove it (nats kv del ${name}) or name another one`);
  if (config.storage !== StorageType.File) throw refuse("is kept in memory and would be lost with the server");
  if (config.max_age > 0) throw refuse("expires all of its keys");
  if (config.mirror !== undefined || config.sources !== undefined) throw refuse("is a copy of another one");
  const change: Partial<StreamInfo["config"]> = {};
  if (config.allow_msg_ttl !== true || !config.subject_delete_marker_ttl) {
    change.allow_msg_ttl = true;
    change.subject_delete_marker_ttl = nanos(MARKER_TTL);
  }
  if (config.max_msgs_per_subject !== 1) change.max_msgs_per_subject = 1;
  if (replicas !== undefined && config.num_replicas !== replicas) change.num_replicas = replicas;
  if (Object.keys(change).length === 0) return;
  let updated: StreamInfo;
  try {
    updated = await manager.streams.update(`KV_${name}`, change);
  } catch (error) {
    throw refuse(`cannot be changed to expire single keys (${error instanceof Error ? error.message : error})`);
  }
  // An older server takes what it does not know without a word.
  if (updated.config.allow_msg_ttl !== true || !updated.config.subject_delete_marker_ttl) {
    throw new Error("the NATS server cannot expire single keys of a bucket; use nats-server 2.12.5 or newer");
  }
}

class KvBucket implements Bucket {
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #api: string;
  readonly #name: string;
  readonly #stream: string;
  /** The part of the bucket that this one is; empty for all of it. */
  readonly #within: string;
  readonly #prefix: string;
  /** Where to publish to: in another domain behind its API's prefix. */
  readonly #writePrefix: string;
  readonly #timeout: number;
  readonly #window = new Window(WRITES);

  constructor(
    connection: NatsConnection,
    manager: JetStreamManager,
    api: string,
    name: string,
    timeout: number,
    within = "",
  ) {
    this.#connection = connection;
    this.#manager = manager;
    this.#api = api;
    this.#name = name;
    this.#stream = `KV_${name}`;
    this.#within = within;
    this.#prefix = `$KV.${name}.${within}`;
    this.#writePrefix = api === "$JS.API" ? this.#prefix : `${api}.${this.#prefix}`;
    this.#timeout = timeout;
  }

  within(prefix: string): Bucket {
    const inner = this.#within + prefix;
    return new KvBucket(this.#connection, this.#manager, this.#api, this.#name, this.#timeout, inner);
  }

  create(key: string, value: Uint8Array, permit?: Permit): Promise<Written> {
    return this.#window.run(() => this.#put(key, value, 0, {}, { timeout: this.#timeout, permit }));
  }

  update(key: string, value: Uint8Array, revision: number, permit?: Permit): Promise<Written> {
    return this.#window.run(() => this.#write(key, value, revision, {}, { timeout: this.#timeout, permit }));
  }

  remove(key: string, revision: number, permit?: Permit): Promise<Written> {
    // Without a time to live the markers of queues that came and went would fill the bucket for ever.
    const marker = { "KV-Operation": "DEL", "Nats-TTL": `${MARKER_TTL / 1_000}s` };
    const limits = { timeout: this.#timeout, permit };
    return this.#window.run(() => this.#write(key, new Uint8Array(), revision, marker, limits));
  }

  refresh(key: string, value: Uint8Array, revision: number, ttl: number): Promise<Written> {
    // The server counts whole seconds and cuts the rest off: 1500ms expires after one (measured on 2.15.1).
    const fields = { "Nats-TTL": `${Math.ceil(ttl / 1_000)}s` };
    return this.#put(key, value, revision, fields, { timeout: Math.min(this.#timeout, ttl / 3) });
  }

  async read(key: string): Promise<Entry> {
    const found = await this.#message({ last_by_subj: this.#prefix + key });
    if (found === undefined) return { key, value: undefined, revision: 0 };
    const gone = isGoneBlock(Buffer.from(found.hdrs ?? "", "base64").toString("latin1"));
    return { key, value: gone ? undefined : Buffer.from(found.data ?? "", "base64"), revision: found.seq };
  }

  async lastRevision(): Promise<number> {
    const subject = `${this.#api}.STREAM.INFO.${this.#stream}`;
    const info = await request<StreamInfo>(this.#connection, subject, "", { timeout: this.#timeout, isRead: true });
    return info.state.last_seq;
  }

  watch(listener: BucketListener): Promise<Watch> {
    const watched = {
      connection: this.#connection,
      manager: this.#manager,
      stream: this.#stream,
      prefix: this.#prefix,
      lastRevision: () => this.lastRevision(),
      holdsAbove: async (revision: number) =>
        (await this.#message({ seq: revision + 1, next_by_subj: `${this.#prefix}>` })) !== undefined,
    };
    return new BucketWatch(watched, listener).start();
  }

  /** Writes over nothing (`revision` 0) also where a marker says that there was something. */
  async #put(
    key: string,
    value: Uint8Array,
    revision: number,
    fields: Readonly<Record<string, string>>,
    limits: RequestLimits,
  ): Promise<Written> {
    const written = await this.#write(key, value, revision, fields, limits);
    if (written !== "conflict" || revision > 0) return written;
    const present = await this.read(key);
    return present.value === undefined ? this.#write(key, value, present.revision, fields, limits) : "conflict";
  }

  async #write(
    key: string,
    value: Uint8Array,
    revision: number,
    fields: Readonly<Record<string, string>>,
    limits: RequestLimits,
  ): Promise<Written> {
    const block: MsgHdrs = headers();
    block.set("Nats-Expected-Last-Subject-Sequence", String(revision));
    for (const [name, field] of Object.entries(fields)) block.set(name, field);
    try {
      const options = { ...limits, headers: block };
      return (await request<{ seq: number }>(this.#connection, this.#writePrefix + key, value, options)).seq;
    } catch (error) {
      if (error instanceof ApiError && CONFLICTS.has(error.code)) return "conflict";
      throw error;
    }
  }

  /** A stored message as the stream's leader has it; direct gets would ask any replica. */
  async #message(what: object): Promise<{ seq: number; hdrs?: string; data?: string } | undefined> {
    const subject = `${this.#api}.STREAM.MSG.GET.${this.#stream}`;
    try {
      const options = { timeout: this.#timeout, isRead: true };
      const answer = await request<{ message: { seq: number; hdrs?: string; data?: string } }>(
        this.#connection,
        subject,
        JSON.stringify(what),
        options,
      );
      return answer.message;
    } catch (error) {
      if (error instanceof ApiError && error.code === ERROR.noMessage) return undefined;
      throw error;
    }
  }
}

const CONFLICTS: ReadonlySet<number> = new Set([ERROR.wrongLastSequence, ERROR.wrongLastSequenceUnknown]);
