/**
 * Records as the bucket's values: JSON with sorted keys, and back.
 *
 * Used by: mirror (decodes), topology (encodes). Separate because this is the format that replicas of different
 * versions share: a record is checked before it is believed, and a field that this version does not know survives its
 * updates.
 */
import type { BindingRecord, ExchangeRecord, Interval, QueueRecord, ReplicaRecord } from "./entities.ts";

/** A record as it lies in the bucket, unknown fields included. */
export type RawRecord = Readonly<Record<string, unknown>>;

/** A record with its keys sorted at every depth, so that equal records are equal octets. */
export function encodeRecord(record: object): Uint8Array {
  return Buffer.from(JSON.stringify(sorted(record)), "utf8");
}

/** The JSON object in a value of the bucket; undefined where it holds anything else. */
export function decodeRecord(value: Uint8Array): RawRecord | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("utf8"));
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** The revision that created this life of an entity: its own until it is updated, carried along from then on. */
export function idOf(raw: RawRecord, revision: number): number {
  return typeof raw.id === "number" && raw.id > 0 ? raw.id : revision;
}

export function toExchange(raw: RawRecord): ExchangeRecord | undefined {
  const { state, kind, durable, autoDelete, internal, arguments: args } = raw;
  if (state !== "ready" && state !== "deleting") return undefined;
  if (!isKind(kind) || typeof args !== "string") return undefined;
  if (typeof durable !== "boolean" || typeof autoDelete !== "boolean" || typeof internal !== "boolean")
    return undefined;
  return { state, kind, durable, autoDelete, internal, arguments: args };
}

export function toQueue(raw: RawRecord): QueueRecord | undefined {
  const { state, durable, autoDelete, exclusive, type, arguments: args, from } = raw;
  if (state !== "making" && state !== "ready" && state !== "deleting") return undefined;
  if (type !== "classic" && type !== "quorum") return undefined;
  if (typeof durable !== "boolean" || typeof autoDelete !== "boolean") return undefined;
  if (typeof args !== "string" || typeof from !== "number") return undefined;
  const consumed = raw.consumed === true;
  const suspect = typeof raw.suspect === "number" ? { suspect: raw.suspect } : {};
  const rest = { state, durable, autoDelete, type, arguments: args, from, consumed, ...suspect } as const;
  if (exclusive === null) return { ...rest, exclusive };
  if (!isObject(exclusive)) return undefined;
  const { replica, connection } = exclusive;
  if (typeof replica !== "string" || typeof connection !== "string") return undefined;
  return { ...rest, exclusive: { replica, connection } };
}

/** The intervals stay the objects that were read, so that their unknown fields are written back with them. */
export function toBinding(raw: RawRecord): BindingRecord | undefined {
  const { arguments: args, intervals } = raw;
  if (typeof args !== "string" || !Array.isArray(intervals)) return undefined;
  return intervals.every(isInterval) ? { arguments: args, intervals } : undefined;
}

export function toReplica(raw: RawRecord, revision: number): ReplicaRecord {
  return { revision, value: raw };
}

function isInterval(value: unknown): value is Interval {
  if (!isObject(value)) return false;
  const { from, until, closing, queueId, exchangeId, kind } = value;
  if (typeof from !== "number" || typeof queueId !== "number" || typeof exchangeId !== "number") return false;
  // One that is closing has held up to some sequence at least.
  if (closing !== undefined && (closing !== true || until === undefined)) return false;
  return isKind(kind) && (until === undefined || typeof until === "number");
}

function isKind(kind: unknown): kind is ExchangeRecord["kind"] {
  return kind === "direct" || kind === "fanout" || kind === "topic";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, field]) => [name, sorted(field)]));
}
