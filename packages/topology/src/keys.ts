/**
 * The keys of the topology bucket, spelled and read back: what stands where (design: one bucket, many replicas).
 *
 * Used by: mirror (reads them), topology and lease (spell them). Separate from the records because a key is the
 * identity of an entity and must never change its spelling, while a record may gain fields.
 */
import { createHash } from "node:crypto";

/** What identifies a binding (AMQP 0-9-1 counts the arguments in). */
export interface BindingPlace {
  readonly queue: string;
  readonly exchange: string;
  readonly key: string;
  /** The canonical arguments; empty where there are none. */
  readonly arguments: string;
}

/** What a key of the bucket names. The arguments of a binding stand in its record; its key holds their hash. */
export type ParsedKey =
  | { readonly kind: "exchange" | "queue" | "replica"; readonly name: string }
  | { readonly kind: "binding"; readonly queue: string; readonly exchange: string; readonly key: string }
  | { readonly kind: "fleet" | "leader" };

/** The key that says whether the last stop of the fleet was a clean one. */
export const FLEET_KEY = "fleet";

/** The key of the leader's lease: whoever holds it makes every change of the topology (design §4, ONE WRITER). */
export const LEADER_KEY = "leader";

const WORD = /^[A-Za-z0-9_-]+$/;

/** The key of an exchange: `x.<exchange>`. The default exchange is derived, never stored (HIP §2). */
export function exchangeKey(exchange: string): string {
  return `x.${word(exchange)}`;
}

/** The key of a queue: `q.<queue>`. */
export function queueKey(queue: string): string {
  return `q.${word(queue)}`;
}

/**
 * The key of a binding: `b.<queue>.<exchange>.k<binding key in base64url>`, and `.<hash>` of its arguments where it has
 * some. The `k` stands there because an empty binding key would leave an empty last word, which is no key.
 */
export function bindingKey(place: BindingPlace): string {
  const key = Buffer.from(place.key, "utf8").toString("base64url");
  const plain = `b.${word(place.queue)}.${word(place.exchange)}.k${key}`;
  return place.arguments === "" ? plain : `${plain}.${hashOf(place.arguments)}`;
}

/** The key of a replica's presence lease: `r.<replica>`. */
export function replicaKey(replica: string): string {
  return `r.${word(replica)}`;
}

/** What a key names; undefined for one that this version does not know (a newer replica's, or a foreign one). */
export function parseKey(key: string): ParsedKey | undefined {
  if (key === FLEET_KEY) return { kind: "fleet" };
  if (key === LEADER_KEY) return { kind: "leader" };
  const [kind, first, second, third] = key.split(".");
  if (first === undefined) return undefined;
  switch (kind) {
    case "x":
      return second === undefined ? { kind: "exchange", name: first } : undefined;
    case "q":
      return second === undefined ? { kind: "queue", name: first } : undefined;
    case "r":
      return second === undefined ? { kind: "replica", name: first } : undefined;
    case "b":
      if (second === undefined || third?.startsWith("k") !== true) return undefined;
      return {
        kind: "binding",
        queue: first,
        exchange: second,
        key: Buffer.from(third.slice(1), "base64url").toString("utf8"),
      };
    default:
      return undefined;
  }
}

/** A name with a dot or a wildcard in it would be another entity's key: the callers have checked it (HIP §2). */
function word(name: string): string {
  if (!WORD.test(name)) throw new RangeError(`'${name}' is not one word of a bucket key`);
  return name;
}

/** 128 bits of SHA-256: enough that no two argument tables meet, short enough for a subject. */
function hashOf(args: string): string {
  return createHash("sha256").update(args, "utf8").digest().subarray(0, 16).toString("base64url");
}
