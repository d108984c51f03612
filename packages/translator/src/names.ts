/**
 * What a queue, an exchange and an exchange's kind may be called. A name is ONE subject word, since a dot in it would
 * make exchange `a` with key `b.c` and exchange `a.b` with key `c` one subject (HIP §2); a kind is implemented only
 * where routing is a function of names. Used by declare, before anything is written. Separate from subjects because
 * names are checked once, at declaration, and keys at every publish.
 */
import { type Fault, refuse } from "./fault.ts";

/** The exchange kinds that have a translation (HIP §2). */
export type ExchangeKind = "direct" | "fanout" | "topic";

/** The most characters of a queue's or exchange's name (HIP §2). */
export const NAME_CHARACTERS = 128;

const NAME = /^[A-Za-z0-9_-]{1,128}$/;
const FOREIGN = /[^A-Za-z0-9_-]/u;

/**
 * Checks the name of a queue or exchange that a client chose: `[A-Za-z0-9_-]`, 1 to 128 characters, and not `_` for an
 * exchange, which is how the default exchange is spelled. Callers handle the default exchange `""` and server-named
 * queues before they ask. Returns the refusal (406), or undefined where the name is good. HIP §2.
 */
export function checkName(what: "queue" | "exchange", name: string): Fault | undefined {
  if (NAME.test(name)) {
    if (what === "queue" || name !== "_") return undefined;
    return refuse(406, "exchange name ", name, " is the subject word of the default exchange; choose another name");
  }
  if (name === "") return refuse(406, `${what} name `, name, " is empty; use 1 to 128 of A-Z a-z 0-9 _ -");
  const foreign = FOREIGN.test(name);
  const rule = foreign ? "is not one subject word" : "is longer than 128 characters";
  return refuse(406, `${what} name `, name, ` ${rule}; use 1 to 128 of A-Z a-z 0-9 _ - (no dots)`);
}

// HIP §4 for headers; the others are the kinds that RabbitMQ's plugins (and its own x-local-random) add.
const NO_SUBJECT = "routes on something other than a name and has no subject to be";
const UNTRANSLATABLE: ReadonlyMap<string, string> = new Map([
  ["headers", `${NO_SUBJECT}; use topic, with the values as words of the key`],
  ["x-jms-headers", `${NO_SUBJECT}; use topic, with the values as words of the key`],
  ["x-jms-topic", `${NO_SUBJECT}; use topic, with the selected values as words of the key`],
  ["x-consistent-hash", `${NO_SUBJECT}; use direct, and put the shard into the key when publishing`],
  ["x-modulus-hash", `${NO_SUBJECT}; use direct, and put the shard into the key when publishing`],
  ["x-random", `${NO_SUBJECT}; let several consumers share one queue`],
  ["x-local-random", `${NO_SUBJECT}; let several consumers share one queue`],
  ["x-delayed-message", "holds messages back, and a subject cannot; publish when the message is due"],
  ["x-recent-history", "replays messages from before a binding; declare and bind the queue first"],
  ["x-lvc", "replays messages from before a binding; declare and bind the queue first"],
  ["x-message-deduplication", "drops legal duplicates; let the consumer remember message-ids"],
  ["x-rtopic", "matches keys the other way round; use topic, with the wildcards in the binding"],
]);

/**
 * Checks the kind of an exchange.declare. Returns the kind where it is implemented; 540 naming the remedy for `headers`
 * and the kinds of known plugins; 406 in RabbitMQ 4's words for anything else. Kinds are case-sensitive. HIP §2, §4.
 */
export function checkKind(kind: string): ExchangeKind | Fault {
  if (kind === "direct" || kind === "fanout" || kind === "topic") return kind;
  const reason = UNTRANSLATABLE.get(kind);
  if (reason !== undefined) return refuse(540, "exchange type ", kind, ` ${reason}`);
  return refuse(
    406,
    kind === "" ? "invalid exchange type " : "unknown exchange type ",
    kind,
    "; use direct, fanout or topic",
  );
}
