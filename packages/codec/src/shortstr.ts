// Short strings outside of a method: UTF-8 of at most 255 octets after one octet of length (AMQP 4.2.5.3).
// The broker cuts reply texts to fit and encodes names once that it writes with every delivery. Separate because both
// the growing encoder and the slab writer need them.
import { syntaxError } from "./error.ts";

/** The longest shortstr, in octets of UTF-8. */
export const SHORTSTR_MAX = 255;

/** The text, cut at a character border where its UTF-8 is longer than `max` octets (255 by default). */
export function truncateShortstr(text: string, max: number = SHORTSTR_MAX): string {
  if (text.length * 3 <= max) return text;
  const octets = Buffer.from(text);
  if (octets.length <= max) return text;
  let end = max;
  while (end > 0 && ((octets[end] as number) & 0xc0) === 0x80) end--; // inside a character: its first octet is left of it
  return octets.toString("utf8", 0, end);
}

/**
 * A shortstr with its length octet, to be given to the {@link Writer} in place of the text as often as wanted.
 *
 * @throws CodecError 502 where the text is longer than 255 octets.
 */
export function encodeShortstr(text: string): Buffer {
  const size = Buffer.byteLength(text);
  if (size > SHORTSTR_MAX) throw syntaxError(`a shortstr holds ${SHORTSTR_MAX} octets, not ${size}`);
  const octets = Buffer.allocUnsafe(1 + size);
  octets[0] = size;
  octets.write(text, 1, "utf8");
  return octets;
}
