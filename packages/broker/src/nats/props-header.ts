/**
 * The one header of a message, `Amqp-Props` (HIP §2.2): properties as base64, and its block of octets.
 *
 * Responsibilities: builds the header block in one allocation (none for the properties of the message before),
 * finds and reads it in a block that came, whoever wrote it.
 * Used by: publisher, incoming, bus.ts (sizes). Separate because it is pure, by hand, and measured.
 */
import { Buffer } from "node:buffer";

const HEAD = "NATS/1.0\r\nAmqp-Props: ";
const TAIL = "\r\n\r\n";
const NAME = "Amqp-Props:";
const VERSION_LINE = 10;
/** What the header block weighs beyond the base64 of the properties. */
export const HEADER_OVERHEAD: number = HEAD.length + TAIL.length;
/** NATS headers stop there (design §7). */
export const HEADER_LIMIT = 65_535;

/** What stands for "no properties": flags of zero and an empty list. */
export const NO_PROPERTIES: Uint8Array = new Uint8Array(2);

const REMEMBERED_LENGTH = 64;

/** Octets of base64 for so many octets. */
export function base64Length(octets: number): number {
  return Math.ceil(octets / 3) * 4;
}

/** Encodes header blocks. Remembers the last short one: publishers rarely change their properties. */
export class PropsHeader {
  #properties: Uint8Array = NO_PROPERTIES;
  #block: Buffer = encode(NO_PROPERTIES);

  block(properties: Uint8Array): Uint8Array {
    if (properties.length > REMEMBERED_LENGTH) return encode(properties);
    if (!equal(properties, this.#properties)) {
      this.#properties = properties.slice();
      this.#block = encode(properties);
    }
    return this.#block;
  }
}

function encode(properties: Uint8Array): Buffer {
  const view = Buffer.from(properties.buffer, properties.byteOffset, properties.length);
  const block = Buffer.allocUnsafe(HEADER_OVERHEAD + base64Length(properties.length));
  let at = block.write(HEAD, "latin1");
  at += block.write(view.toString("base64"), at, "latin1");
  block.write(TAIL, at, "latin1");
  return block;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * The properties in a header block; {@link NO_PROPERTIES} where there is no such header; `undefined` where it is
 * there and is no base64 (a native publisher's mistake).
 */
export function readProps(block: Buffer): Uint8Array | undefined {
  let at = VERSION_LINE;
  if (block.length < at + NAME.length) return NO_PROPERTIES;
  if (block.toString("latin1", at, at + NAME.length) !== NAME) {
    const found = block.indexOf(`\r\n${NAME}`, 0, "latin1");
    if (found < 0) return NO_PROPERTIES;
    at = found + 2;
  }
  at += NAME.length;
  let end = block.indexOf(13, at);
  if (end < 0) end = block.length;
  while (at < end && block[at] === 32) at++;
  while (end > at && block[end - 1] === 32) end--;
  return fromBase64(block.toString("latin1", at, end));
}

/** Node's decoder skips what is no base64; so the length tells whether it skipped any. */
function fromBase64(text: string): Uint8Array | undefined {
  let length = text.length;
  while (length > 0 && text.charCodeAt(length - 1) === 61) length--;
  if (length % 4 === 1) return undefined;
  const octets = Buffer.from(text, "base64");
  return octets.length === Math.floor((length * 3) / 4) && octets.length >= 2 ? octets : undefined;
}
