/**
 * Splits what the server sends: messages of our own subscriptions out, everything else to the client's parser.
 *
 * Responsibilities: finding the frames in a stream of chunks, however it was cut; a message in one chunk is a view on it,
 * one that spans chunks is gathered once in a buffer of its size. Used by: hand-wire. Separate because it is pure: its
 * law (any partition, the same messages and the same rest) is tested alone.
 */
import { Buffer } from "node:buffer";
import { type Frame, OctetFrame } from "./frame.ts";

const LF = 10;
const H = 72;
const M = 77;
/** A line is gathered in steps of so many octets. */
const LINE = 1_024;

/** Takes a message; the frame is good during the call. */
export type FrameHandler = (frame: Frame) => void;

export interface SplitterListener {
  /** Who takes the messages of that subscription; undefined where it is none of ours. */
  handlerOf(sid: number): FrameHandler | undefined;
  /** Whole frames that are none of ours, in their order between ours. */
  rest(octets: Buffer): void;
}

export class Splitter {
  readonly #listener: SplitterListener;
  readonly #frame: OctetFrame = new OctetFrame();
  /** A frame that an earlier chunk began. */
  #gathered: Buffer | undefined;
  #length = 0;
  /** Octets of that frame; 0 while its line is not whole. */
  #needed = 0;

  constructor(listener: SplitterListener) {
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let at = this.#gathered === undefined ? 0 : this.#gather(chunk);
    let from = at;
    while (at < chunk.length) {
      const end = this.#endOf(chunk, at);
      if (end === 0 || end > chunk.length) {
        this.#rest(chunk, from, at);
        this.#begin(chunk, at, end === 0 ? 0 : end - at);
        return;
      }
      const handler = isMessage(chunk, at) ? this.#listener.handlerOf(this.#frame.sid) : undefined;
      if (handler !== undefined) {
        this.#rest(chunk, from, at);
        handler(this.#frame);
        from = end;
      }
      at = end;
    }
    this.#rest(chunk, from, at);
  }

  /** Where the frame at `at` ends, which may be beyond the octets; 0 where its line is not whole. */
  #endOf(octets: Buffer, at: number): number {
    if (isMessage(octets, at)) return this.#frame.read(octets, at) ? this.#frame.end : 0;
    return octets.indexOf(LF, at) + 1;
  }

  #rest(octets: Buffer, from: number, to: number): void {
    if (from < to) this.#listener.rest(octets.subarray(from, to));
  }

  #begin(chunk: Buffer, at: number, needed: number): void {
    this.#length = 0;
    this.#needed = needed;
    this.#gathered = Buffer.allocUnsafe(needed > 0 ? needed : LINE);
    this.#append(chunk, at, chunk.length);
  }

  /** Goes on with the frame that was begun; returns where the next one begins. */
  #gather(chunk: Buffer): number {
    let at = 0;
    if (this.#needed === 0) {
      const line = chunk.indexOf(LF) + 1;
      at = this.#append(chunk, 0, line === 0 ? chunk.length : line);
      if (line === 0) return at;
      const gathered = this.#gathered as Buffer;
      this.#needed = isMessage(gathered, 0) ? this.#endOf(gathered.subarray(0, this.#length), 0) : this.#length;
    }
    at = this.#append(chunk, at, Math.min(chunk.length, at + this.#needed - this.#length));
    if (this.#length < this.#needed) return at;
    const whole = (this.#gathered as Buffer).subarray(0, this.#length);
    this.#gathered = undefined;
    this.#endOf(whole, 0);
    const handler = isMessage(whole, 0) ? this.#listener.handlerOf(this.#frame.sid) : undefined;
    if (handler === undefined) this.#listener.rest(whole);
    else handler(this.#frame);
    return at;
  }

  #append(chunk: Buffer, from: number, to: number): number {
    const length = this.#length + to - from;
    let gathered = this.#gathered as Buffer;
    if (gathered.length < length || gathered.length < this.#needed) {
      gathered = Buffer.allocUnsafe(Math.max(this.#needed, length + LINE));
      (this.#gathered as Buffer).copy(gathered, 0, 0, this.#length);
      this.#gathered = gathered;
    }
    chunk.copy(gathered, this.#length, from, to);
    this.#length = length;
    return to;
  }
}

/** `MSG` or `HMSG`: nothing else that a server sends begins so. */
function isMessage(octets: Buffer, at: number): boolean {
  return octets[at] === M || octets[at] === H;
}
