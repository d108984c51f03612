// A cursor over octets: every primitive wire type, read with its bounds checked.
// method.ts, table.ts and properties.ts decode through it. Separate because bounds are checked here and only here:
// whatever lies about its length ends as a CodecError, never as a RangeError or a read past the end.
import { syntaxError } from "./error.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const SHORT_TEXT = 48;
const isBuffer = Buffer.isBuffer; // the global is a getter, and this is asked for every frame

/** A view on the same octets as a Buffer, without a copy. */
export function asBuffer(octets: Uint8Array): Buffer {
  return isBuffer(octets) ? octets : Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength);
}

/** Text of valid UTF-8, or undefined where the octets are not that. */
export function decodeUtf8(octets: Buffer, start: number, end: number): string | undefined {
  if (end - start <= SHORT_TEXT) {
    let i = start;
    while (i < end && (octets[i] as number) < 0x80) i++;
    if (i === end) return octets.toString("latin1", start, end);
  }
  try {
    return decoder.decode(octets.subarray(start, end));
  } catch {
    return undefined;
  }
}

/** Reads `octets` from `position` up to `end`; a read past the end is a CodecError 502. */
export class Reader {
  readonly octets: Buffer;
  position: number;
  readonly end: number;

  constructor(octets: Uint8Array, position = 0, end: number = octets.length) {
    this.octets = asBuffer(octets);
    this.position = position;
    this.end = end;
  }

  get remaining(): number {
    return this.end - this.position;
  }

  octet(): number {
    return this.octets[this.#take(1)] as number;
  }

  short(): number {
    return this.octets.readUInt16BE(this.#take(2));
  }

  long(): number {
    return this.octets.readUInt32BE(this.#take(4));
  }

  longlong(): bigint {
    return this.octets.readBigUInt64BE(this.#take(8));
  }

  shortstr(): string {
    const size = this.octet();
    const start = this.#take(size);
    const text = decodeUtf8(this.octets, start, this.position);
    if (text === undefined) throw syntaxError("malformed UTF-8 in shortstr");
    return text;
  }

  /** A view on a longstr's octets. */
  longstr(): Buffer {
    const size = this.long();
    return this.bytes(size);
  }

  /** A view on the next `size` octets. */
  bytes(size: number): Buffer {
    const start = this.#take(size);
    return this.octets.subarray(start, this.position);
  }

  skip(size: number): void {
    this.#take(size);
  }

  /** Moves past `size` octets and returns where they start. */
  #take(size: number): number {
    const start = this.position;
    if (size > this.end - start) {
      throw syntaxError(`truncated: ${size} octets announced, ${this.end - start} left`);
    }
    this.position = start + size;
    return start;
  }
}
