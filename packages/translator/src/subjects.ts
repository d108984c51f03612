/**
 * Exchange and routing key to the subject a message is stored under, and back (HIP §2). The map is injective: no two
 * pairs share a subject, which is why names are one word and keys literal. Used at every publish (callers cache the
 * result by pair) and at every delivery.
 *
 * Lengths: NATS bounds a subject only by its control line (4,096 octets by default). The root, an exchange of 128 and
 * a key of 255 octets, AMQP's own bound, stay far below, so no length is refused here.
 */
import { type Fault, isFault, octetsOf, refuse } from "./fault.ts";
import { checkName } from "./names.ts";
import { isLiteralKey, spellingFault } from "./words.ts";

/** The subject tree of this gateway (HIP §2.2). */
export const ROOT = "amqp";

/** What a routing key may take on the wire: an AMQP short string (AMQP 4.2.5.3). */
const KEY_OCTETS = 255;

/**
 * The subject that a message published to `exchange` under `routingKey` is stored at: `amqp.<exchange>.<key>`. The
 * default exchange `""` is the word `_`; an empty key is spelled by leaving the word out. UTF-8 keys are legal.
 * Returns 406 where the key is not literal (an empty word, any of `* # >`, whitespace, control characters, malformed
 * text) or the exchange's name is not legal. Injective; {@link fromSubject} is its inverse. HIP §2.
 */
export function toSubject(exchange: string, routingKey: string, root: string = ROOT): string | Fault {
  const prefix = toPrefix(exchange, root);
  if (routingKey === "" || isFault(prefix)) return prefix;
  if (isLiteralKey(routingKey)) return `${prefix}.${routingKey}`;
  return (
    spellingFault(406, "routing key ", routingKey) ??
    refuse(406, "routing key ", routingKey, " holds one of * # >, and a published key is literal; leave them out")
  );
}

/** The subject of an exchange with an empty key: the root and the exchange's word. Returns 406 for an illegal name. */
export function toPrefix(exchange: string, root: string): string | Fault {
  return exchange === "" ? `${root}._` : (checkName("exchange", exchange) ?? `${root}.${exchange}`);
}

/**
 * The exchange and routing key that a subject stands for. It inverts {@link toSubject}, and reads what a native NATS
 * publisher chose besides (a word such as `a*`, which NATS takes literally and AMQP's publish refuses). Undefined for
 * what no AMQP delivery can name: another tree, an exchange that cannot be declared, a key of more than 255 octets.
 */
export function fromSubject(
  subject: string,
  root: string = ROOT,
): { readonly exchange: string; readonly routingKey: string } | undefined {
  if (!subject.startsWith(root) || subject.charCodeAt(root.length) !== 0x2e) return undefined;
  const start = root.length + 1;
  const dot = subject.indexOf(".", start);
  const word = dot < 0 ? subject.slice(start) : subject.slice(start, dot);
  if (word !== "_" && checkName("exchange", word) !== undefined) return undefined;
  const routingKey = dot < 0 ? "" : subject.slice(dot + 1);
  // An empty last word is not a subject; the empty key is spelled without it.
  if (dot >= 0 && routingKey === "") return undefined;
  if (routingKey.length * 3 > KEY_OCTETS && octetsOf(routingKey) > KEY_OCTETS) return undefined;
  return { exchange: word === "_" ? "" : word, routingKey };
}
