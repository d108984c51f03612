// The 14 message properties: the property flags and property list of a content header, typed and lossless.
// The broker carries these octets without decoding them (HIP §2.2) and looks at single ones: peekProperty skips to one,
// checkProperties refuses malformed ones at the door, before they could reach a consumer. Separate from methods because
// absent properties take no octets (AMQP 4.2.6.1). `basic` has 14 properties, so the flags never continue: a set
// continuation bit (0) or the unused bit 1 is a CodecError 502.
import { syntaxError } from "./error.ts";
import { Octets } from "./octets.ts";
import { Reader } from "./reader.ts";
import { readTable, skipTable, writeTable } from "./table.ts";
import type { DecodedTypes, EncodableTypes } from "./types.ts";

/** Name and wire type of each property in wire order; the first has flag bit 15, the last bit 2. */
export const PROPERTIES = [
  ["contentType", "shortstr"],
  ["contentEncoding", "shortstr"],
  ["headers", "table"],
  ["deliveryMode", "octet"],
  ["priority", "octet"],
  ["correlationId", "shortstr"],
  ["replyTo", "shortstr"],
  ["expiration", "shortstr"],
  ["messageId", "shortstr"],
  ["timestamp", "timestamp"],
  ["type", "shortstr"],
  ["userId", "shortstr"],
  ["appId", "shortstr"],
  ["clusterId", "shortstr"],
] as const;

type Row = (typeof PROPERTIES)[number];
type PropertyType = Row[1];

/** The name of a property. */
export type PropertyName = Row[0];

/** The properties that a message has; one that is absent takes no octets. */
export type Properties = { readonly [R in Row as R[0]]?: DecodedTypes[R[1]] };

/** Properties as the encoder takes them. */
export type PropertiesInput = { readonly [R in Row as R[0]]?: EncodableTypes[R[1]] | undefined };

/** The value of one property. */
export type PropertyValue<N extends PropertyName> = NonNullable<Properties[N]>;

/** Flags and list of a message without properties: two zero octets. */
export const NO_PROPERTIES: Uint8Array = new Uint8Array(2);

const FIRST_FLAG = 0x8000;
const UNUSED_FLAGS = 0x0003;

const PLACE = Object.fromEntries(PROPERTIES.map(([name], place) => [name, place])) as Record<PropertyName, number>;

/**
 * Decodes property flags and list.
 *
 * @throws CodecError 502 where they do not fill `octets` exactly or hold what their types forbid.
 */
export function decodeProperties(octets: Uint8Array): Properties {
  const reader = new Reader(octets);
  const flags = readFlags(reader);
  const properties: Record<string, DecodedTypes[PropertyType]> = {};
  for (let place = 0; place < PROPERTIES.length; place++) {
    const [name, type] = PROPERTIES[place] as Row;
    if ((flags & (FIRST_FLAG >> place)) !== 0) properties[name] = readProperty(reader, type);
  }
  requireEnd(reader);
  return properties as Properties;
}

/**
 * The property flags and list of these properties; those that are undefined are absent.
 *
 * @throws CodecError 502 where a value does not fit its type.
 */
export function encodeProperties(properties: PropertiesInput): Buffer {
  let flags = 0;
  for (let place = 0; place < PROPERTIES.length; place++) {
    if (properties[(PROPERTIES[place] as Row)[0]] !== undefined) flags |= FIRST_FLAG >> place;
  }
  const octets = new Octets();
  octets.short(flags);
  for (const [name, type] of PROPERTIES) {
    const value = properties[name];
    if (value !== undefined) writeProperty(octets, type, value);
  }
  return octets.take();
}

/**
 * One property without decoding the others: a look at the flags, then a skip over what stands before it.
 *
 * @returns its value, or undefined where the message does not have it.
 * @throws CodecError 502 where the octets before or of the property are malformed.
 */
export function peekProperty<N extends PropertyName>(octets: Uint8Array, name: N): PropertyValue<N> | undefined {
  const wanted = PLACE[name];
  const flags = ((octets[0] ?? 0) << 8) | (octets[1] ?? 0);
  if ((flags & (FIRST_FLAG >> wanted)) === 0) return undefined;
  const reader = new Reader(octets, 2);
  for (let place = 0; place < wanted; place++) {
    if ((flags & (FIRST_FLAG >> place)) !== 0) skipProperty(reader, (PROPERTIES[place] as Row)[1]);
  }
  return readProperty(reader, (PROPERTIES[wanted] as Row)[1]) as unknown as PropertyValue<N>;
}

/** The `expiration` property as its publisher wrote it (milliseconds as text), or undefined. */
export function expirationOf(octets: Uint8Array): string | undefined {
  return peekProperty(octets, "expiration");
}

/**
 * Checks flags, lengths and field table without building values.
 *
 * @throws CodecError 502 where `decodeProperties` would throw, but for text that is not UTF-8, which passes.
 */
export function checkProperties(octets: Uint8Array): void {
  // The commonest kinds: none at all, or just a delivery mode.
  if (octets.length === 2 && octets[0] === 0 && octets[1] === 0) return;
  const reader = new Reader(octets);
  const flags = readFlags(reader);
  for (let place = 0; place < PROPERTIES.length; place++) {
    if ((flags & (FIRST_FLAG >> place)) === 0) continue;
    const type = (PROPERTIES[place] as Row)[1];
    if (type === "table") skipTable(reader);
    else skipProperty(reader, type);
  }
  requireEnd(reader);
}

function readFlags(reader: Reader): number {
  const flags = reader.short();
  if ((flags & UNUSED_FLAGS) !== 0) throw syntaxError("property flags beyond the 14 properties of basic");
  return flags;
}

function requireEnd(reader: Reader): void {
  if (reader.remaining > 0) throw syntaxError(`${reader.remaining} octets after the property list`);
}

function readProperty(reader: Reader, type: PropertyType): DecodedTypes[PropertyType] {
  switch (type) {
    case "shortstr":
      return reader.shortstr();
    case "octet":
      return reader.octet();
    case "timestamp":
      return reader.longlong();
    case "table":
      return readTable(reader);
  }
}

function skipProperty(reader: Reader, type: PropertyType): void {
  switch (type) {
    case "shortstr":
      reader.skip(reader.octet());
      break;
    case "octet":
      reader.skip(1);
      break;
    case "timestamp":
      reader.skip(8);
      break;
    case "table":
      reader.skip(reader.long());
      break;
  }
}

function writeProperty(octets: Octets, type: PropertyType, value: EncodableTypes[PropertyType]): void {
  // PROPERTIES pairs each name with its type, so the value is of that type.
  switch (type) {
    case "shortstr":
      octets.shortstr(value as EncodableTypes["shortstr"]);
      break;
    case "octet":
      octets.octet(value as EncodableTypes["octet"]);
      break;
    case "timestamp":
      octets.longlong(value as EncodableTypes["timestamp"]);
      break;
    case "table":
      writeTable(octets, value as EncodableTypes["table"]);
      break;
  }
}
