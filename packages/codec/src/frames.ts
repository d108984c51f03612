// Splits a byte stream into frames (AMQP 4.2.3), however the stream was cut into chunks.
// The broker's connection feeds it what the socket gives; the tooling feeds it captured streams. Separate from
// commands.ts because framing belongs to the connection and assembling to each channel.
// A payload inside one chunk is a view on it. One that spans chunks is gathered in a buffer that grows with what has
// come, so a size that lies costs nothing and no chunk is copied twice over.
import { FRAME_END, FRAME_HEADER_SIZE, FRAME_OVERHEAD, FrameType, PROTOCOL_HEADER, ReplyCode } from "./constants.ts";
import { CodecError } from "./error.ts";

/** Called with each frame; `payload` may be kept: nothing writes to it again. */
export type FrameListener = (type: FrameType, channel: number, payload: Buffer) => void;

/** How large a frame may be. */
export interface FrameDecoderOptions {
  /** The most octets of a whole frame, header and frame end included, as a frame-max counts; 0 = no limit. */
  readonly maxFrameSize: number;
}

const LEAST_CAPACITY = 256;
// Two or three buffers for the largest usual frame (128 KiB) read in segments; memory stays in step with what came.
const GROWTH = 16;

/**
 * Splits chunks into frames. After an error, or an exception of the listener, the stream is lost: the decoder is
 * done with and the connection is to be closed.
 */
export class FrameDecoder {
  #maxFrameSize: number;
  readonly #header: Buffer = Buffer.alloc(FRAME_HEADER_SIZE);
  #headerLength = 0;
  // The frame begun in an earlier chunk: its payload and frame end so far.
  #gathered: Buffer | undefined;
  #gatheredLength = 0;

  constructor({ maxFrameSize }: FrameDecoderOptions) {
    this.#maxFrameSize = maxFrameSize;
  }

  /** The most octets of a whole frame; 0 = no limit. */
  get maxFrameSize(): number {
    return this.#maxFrameSize;
  }

  /** Takes effect with the next frame, also within a chunk (the listener may set it after tune-ok). */
  set maxFrameSize(octets: number) {
    this.#maxFrameSize = octets;
  }

  /** Octets of an unfinished frame held back until the rest comes. */
  get bytesHeld(): number {
    return this.#headerLength + this.#gatheredLength;
  }

  /**
   * Takes the next chunk and calls `onFrame` for every frame that it completes, in order.
   *
   * @throws CodecError 501 as soon as the seven header octets show a frame above the limit or of an unknown type, and
   * where a frame does not end in the frame end octet.
   */
  push(chunk: Buffer, onFrame: FrameListener): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headerLength === 0 && chunk.length - at >= FRAME_HEADER_SIZE) {
        // The common case: header and payload in this chunk, nothing copied.
        const size = this.#requireFrame(chunk, at);
        const start = at + FRAME_HEADER_SIZE;
        const end = start + size;
        if (end < chunk.length) {
          requireFrameEnd(chunk[end]);
          const type = chunk[at] as FrameType;
          const channel = ((chunk[at + 1] as number) << 8) | (chunk[at + 2] as number);
          at = end + 1;
          onFrame(type, channel, chunk.subarray(start, end));
          continue;
        }
      }
      at = this.#headerLength < FRAME_HEADER_SIZE ? this.#takeHeader(chunk, at) : this.#takePayload(chunk, at, onFrame);
    }
  }

  #takeHeader(chunk: Buffer, from: number): number {
    const taken = chunk.copy(this.#header, this.#headerLength, from);
    this.#headerLength += taken;
    if (this.#headerLength === FRAME_HEADER_SIZE) this.#requireFrame(this.#header, 0);
    return from + taken;
  }

  #takePayload(chunk: Buffer, from: number, onFrame: FrameListener): number {
    const size = this.#header.readUInt32BE(3);
    const taken = Math.min(size + 1 - this.#gatheredLength, chunk.length - from);
    const gathered = this.#reserve(taken, size + 1);
    chunk.copy(gathered, this.#gatheredLength, from, from + taken);
    this.#gatheredLength += taken;
    if (this.#gatheredLength === size + 1) {
      requireFrameEnd(gathered[size]);
      this.#headerLength = 0;
      this.#gathered = undefined;
      this.#gatheredLength = 0;
      onFrame(this.#header[0] as FrameType, this.#header.readUInt16BE(1), gathered.subarray(0, size));
    }
    return from + taken;
  }

  /** A buffer with room for `more` octets: `GROWTH` times what has come, at most the `needed` ones. */
  #reserve(more: number, needed: number): Buffer {
    const held = this.#gathered;
    const length = this.#gatheredLength + more;
    if (held !== undefined && held.length >= length) return held;
    const grown = Buffer.allocUnsafe(Math.min(needed, Math.max(length * GROWTH, LEAST_CAPACITY)));
    held?.copy(grown, 0, 0, this.#gatheredLength);
    this.#gathered = grown;
    return grown;
  }

  /** Checks type and size of the frame whose header stands at `at`; returns its payload's size. */
  #requireFrame(octets: Buffer, at: number): number {
    const type = octets[at] as number;
    if (!isFrameType(type)) throw new CodecError(ReplyCode.FRAME_ERROR, `unknown frame type ${type}`);
    const size = octets.readUInt32BE(at + 3);
    const max = this.#maxFrameSize;
    if (max > 0 && size > max - FRAME_OVERHEAD) {
      throw new CodecError(ReplyCode.FRAME_ERROR, `a frame of ${size + FRAME_OVERHEAD} octets where ${max} are agreed`);
    }
    return size;
  }
}

function isFrameType(type: number): type is FrameType {
  return type <= FrameType.BODY ? type >= FrameType.METHOD : type === FrameType.HEARTBEAT;
}

function requireFrameEnd(octet: number | undefined): void {
  if (octet !== FRAME_END) throw new CodecError(ReplyCode.FRAME_ERROR, `a frame ends with octet ${octet}, not 206`);
}

/**
 * Compares the first octets of a connection with the protocol header `AMQP 0 0 9 1`: "ok" once its eight octets are
 * there (more may follow), "need-more" while they may still come, "foreign" as soon as one differs.
 */
export function parseProtocolHeader(octets: Uint8Array): "need-more" | "ok" | "foreign" {
  const length = Math.min(octets.length, PROTOCOL_HEADER.length);
  for (let i = 0; i < length; i++) if (octets[i] !== PROTOCOL_HEADER[i]) return "foreign";
  return length === PROTOCOL_HEADER.length ? "ok" : "need-more";
}
