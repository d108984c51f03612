// Memory for what goes to a socket: written once, handed over, never written again.
// The writer fills it and flushes it once a turn of the loop. Separate from writer.ts because it knows no frame, and
// from octets.ts because it may not move octets once they are handed over: the rest of a slab serves the next turn, and
// a full slab is left to the socket. Pieces of 2 KiB and more go by reference, everything else is copied.
import { syntaxError } from "./error.ts";
import { SHORTSTR_MAX } from "./shortstr.ts";

/** Where a {@link Writer} writes: a `net.Socket`, or anything with these three methods. */
export interface ByteSink {
  /** Takes a chunk, which nobody writes to again; false asks to wait before more is written. */
  write(chunk: Uint8Array): boolean;
  cork(): void;
  uncork(): void;
}

/** A short string: its text, or the octets of {@link encodeShortstr}, which are copied as they are. */
export type Shortstr = string | Uint8Array;

const BY_REFERENCE = 2048; // octets of a piece from which on it is not copied
const LEAST_SLAB = 1024;
const MOST_SLAB = 64 * 1024;
const ASCII_LOOP = 32; // characters up to which a loop beats a call into the runtime
const HIGH = 2 ** 32;
const NO_SLAB: Buffer = Buffer.alloc(0);

/** A growing run of octets on their way out. */
export class Slab {
  /** Where the next octet goes in the buffer that {@link Slab.reserve} returned. */
  end = 0;
  #buffer: Buffer = NO_SLAB;
  #start = 0; // where the octets not yet sealed begin
  #sealed: Uint8Array[] = [];
  #sealedLength = 0;
  #nextSize = LEAST_SLAB;

  get bytesPending(): number {
    return this.#sealedLength + this.end - this.#start;
  }

  /** A buffer with room for `size` octets at `end`: a new one where the present one is too full. */
  reserve(size: number): Buffer {
    if (this.#buffer.length - this.end >= size) return this.#buffer;
    this.#seal();
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(this.#nextSize, size));
    this.#nextSize = Math.min(MOST_SLAB, this.#nextSize * 2);
    this.#start = 0;
    this.end = 0;
    return this.#buffer;
  }

  /** Adds octets: a large piece by reference, which nobody may write to again, a small one as a copy. */
  add(octets: Uint8Array): void {
    if (octets.length >= BY_REFERENCE) {
      this.#seal();
      this.#sealed.push(octets);
      this.#sealedLength += octets.length;
    } else {
      this.reserve(octets.length).set(octets, this.end);
      this.end += octets.length;
    }
  }

  /** Hands everything over: one `write` where it is one piece, else corked writes. Returns what the last one did. */
  flush(sink: ByteSink): boolean {
    const length = this.bytesPending;
    if (length === 0) return true;
    this.#seal();
    const pieces = this.#sealed;
    this.#sealed = [];
    this.#sealedLength = 0;
    // The next buffer suits what a turn writes; a quiet connection does not keep a large one.
    this.#nextSize = Math.min(MOST_SLAB, Math.max(LEAST_SLAB, length * 2));
    if (this.#buffer.length > this.#nextSize * 8) {
      this.#buffer = NO_SLAB;
      this.#start = 0;
      this.end = 0;
    }
    let more = true;
    if (pieces.length > 1) sink.cork();
    for (const piece of pieces) more = sink.write(piece);
    if (pieces.length > 1) sink.uncork();
    return more;
  }

  /** Ends the current piece; what comes next starts another one in the same buffer. */
  #seal(): void {
    if (this.end === this.#start) return;
    this.#sealed.push(this.#buffer.subarray(this.#start, this.end));
    this.#sealedLength += this.end - this.#start;
    this.#start = this.end;
  }
}

/** 32 bits. */
export function putLong(slab: Buffer, at: number, value: number): void {
  slab[at] = value >>> 24;
  slab[at + 1] = value >>> 16;
  slab[at + 2] = value >>> 8;
  slab[at + 3] = value;
}

/** A safe integer as 64 bits: two halves, no bigint. */
export function putLonglong(slab: Buffer, at: number, value: number): number {
  putLong(slab, at, Math.floor(value / HIGH));
  putLong(slab, at + 4, value >>> 0);
  return at + 8;
}

/** A shortstr; returns where the next field starts. */
export function putShortstr(slab: Buffer, at: number, text: Shortstr): number {
  if (typeof text !== "string") {
    slab.set(text, at);
    return at + text.length;
  }
  const length = text.length;
  if (length <= ASCII_LOOP) {
    let i = 0;
    for (; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) break;
      slab[at + 1 + i] = code;
    }
    if (i === length) {
      slab[at] = length;
      return at + 1 + length;
    }
  }
  const size = Buffer.byteLength(text);
  if (size > SHORTSTR_MAX) throw syntaxError(`a shortstr holds ${SHORTSTR_MAX} octets, not ${size}`);
  slab.write(text, at + 1, size, "utf8");
  slab[at] = size;
  return at + 1 + size;
}
