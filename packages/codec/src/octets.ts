// A growing buffer: every primitive wire type, written with its range checked.
// The counterpart of reader.ts; method.ts, table.ts and properties.ts encode through it. Separate from writer.ts,
// which lays out whole frames for a socket and never grows a buffer that it has handed over.
import { syntaxError } from "./error.ts";
import { SHORTSTR_MAX } from "./shortstr.ts";

/** The two halves of an unsigned 64-bit number that is a safe integer. */
const HIGH = 2 ** 32;

function requireRange(value: number, max: number, type: string): void {
  if (!Number.isInteger(value) || value < 0 || value > max) throw syntaxError(`${value} is no ${type}`);
}

/** A bigint for a 64-bit field, whose range is `min` to `max`. */
export function toInt64(value: bigint | number, min: bigint, max: bigint, type: string): bigint {
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw syntaxError(`${value} is no exact ${type}`);
  const exact = BigInt(value);
  if (exact < min || exact > max) throw syntaxError(`${exact} is no ${type}`);
  return exact;
}

/** Octets being written; `take` hands them out. */
export class Octets {
  #buffer: Buffer;
  #length = 0;

  constructor(capacity = 128) {
    this.#buffer = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  octet(value: number): void {
    requireRange(value, 0xff, "octet");
    const at = this.#reserve(1); // first: it may put another buffer in place
    this.#buffer[at] = value;
  }

  short(value: number): void {
    requireRange(value, 0xffff, "short");
    const at = this.#reserve(2);
    this.#buffer.writeUInt16BE(value, at);
  }

  long(value: number): void {
    requireRange(value, 0xffffffff, "long");
    const at = this.#reserve(4);
    this.#buffer.writeUInt32BE(value, at);
  }

  longlong(value: bigint | number): void {
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) {
      const at = this.#reserve(8);
      this.#buffer.writeUInt32BE(Math.floor(value / HIGH), at);
      this.#buffer.writeUInt32BE(value % HIGH, at + 4);
      return;
    }
    const exact = toInt64(value, 0n, 0xffff_ffff_ffff_ffffn, "unsigned 64-bit integer");
    const at = this.#reserve(8);
    this.#buffer.writeBigUInt64BE(exact, at);
  }

  float(value: number): void {
    const at = this.#reserve(4);
    this.#buffer.writeFloatBE(value, at);
  }

  double(value: number): void {
    const at = this.#reserve(8);
    this.#buffer.writeDoubleBE(value, at);
  }

  shortstr(text: string): void {
    const size = Buffer.byteLength(text);
    if (size > SHORTSTR_MAX) throw syntaxError(`a shortstr holds ${SHORTSTR_MAX} octets, not ${size}`);
    const at = this.#reserve(1 + size);
    this.#buffer[at] = size;
    this.#buffer.write(text, at + 1, size, "utf8");
  }

  longstr(content: Uint8Array | string): void {
    if (typeof content === "string") {
      const size = Buffer.byteLength(content);
      this.long(size);
      const at = this.#reserve(size);
      this.#buffer.write(content, at, size, "utf8");
    } else {
      this.long(content.length);
      this.bytes(content);
    }
  }

  bytes(content: Uint8Array): void {
    const at = this.#reserve(content.length);
    this.#buffer.set(content, at);
  }

  /** Writes a 32-bit length before whatever `write` writes. */
  sized(write: () => void): void {
    const at = this.#reserve(4);
    write();
    const size = this.#length - at - 4;
    requireRange(size, 0xffffffff, "long");
    this.#buffer.writeUInt32BE(size, at);
  }

  /** The octets written so far: a view, nothing more may be written after it. */
  take(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Makes room for `size` octets and returns where they start. */
  #reserve(size: number): number {
    const at = this.#length;
    const needed = at + size;
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
      this.#buffer.copy(grown, 0, 0, at);
      this.#buffer = grown;
    }
    this.#length = needed;
    return at;
  }
}
