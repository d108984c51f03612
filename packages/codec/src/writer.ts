// The way out: frames laid one after another into a slab and handed to the socket once a turn of the loop.
// Each connection of the broker has one; its outbox calls flush. Separate from method.ts, whose engine lays out one
// method at a time: here the hottest methods are straight-line, and content is cut into frames.
import { BASIC_CLASS_ID, FRAME_END, FRAME_OVERHEAD, FrameType } from "./constants.ts";
import { writeMethod } from "./method.ts";
import { METHODS } from "./methods.ts";
import { Octets } from "./octets.ts";
import { SHORTSTR_MAX } from "./shortstr.ts";
import { type ByteSink, putLong, putLonglong, putShortstr, type Shortstr, Slab } from "./slab.ts";
import type { ContentMethodName, FieldsInput, MethodName } from "./types.ts";

/** A body: one piece or several in order. */
export type BodyPieces = Uint8Array | readonly Uint8Array[];

const { classId: BASIC, methodId: DELIVER } = METHODS["basic.deliver"];
const ACK = METHODS["basic.ack"].methodId;
const NACK = METHODS["basic.nack"].methodId;

/**
 * Writes frames; nothing reaches the sink before {@link Writer.flush}. Frames leave in the order of the calls.
 * A call that throws (CodecError 502: a value does not fit its field) has written nothing.
 */
export class Writer {
  readonly #slab: Slab = new Slab();

  /** Octets waiting for the next flush. */
  get bytesPending(): number {
    return this.#slab.bytesPending;
  }

  /** Any method without content, or a content method whose header and body the caller adds himself. */
  methods<N extends MethodName>(channel: number, name: N, fields: FieldsInput<N>): void {
    const payload = new Octets();
    writeMethod(payload, name, fields);
    this.#frame(FrameType.METHOD, channel, payload.take());
  }

  /** `basic.deliver` with its content; the body is cut into frames of `frameMax` octets (0 = never cut). */
  deliver(
    channel: number,
    consumerTag: Shortstr,
    deliveryTag: number,
    redelivered: boolean,
    exchange: Shortstr,
    routingKey: Shortstr,
    properties: Uint8Array,
    body: BodyPieces,
    frameMax: number,
  ): void {
    // Method frame 8 + ids 4 + tag 8 + bit 1 and three shortstrs of at most 256 octets.
    const slab = this.#slab.reserve(FRAME_OVERHEAD + 13 + 3 * (SHORTSTR_MAX + 1));
    const frame = this.#slab.end;
    let at = putIds(slab, frame, channel, BASIC, DELIVER);
    at = putShortstr(slab, at, consumerTag);
    at = putLonglong(slab, at, deliveryTag);
    slab[at] = redelivered ? 1 : 0;
    at = putShortstr(slab, at + 1, exchange);
    at = putShortstr(slab, at, routingKey);
    this.#slab.end = endFrame(slab, frame, at);
    this.#content(channel, properties, body, frameMax);
  }

  /** `basic.get-ok` with its content. */
  getOk(
    channel: number,
    deliveryTag: number,
    redelivered: boolean,
    exchange: string,
    routingKey: string,
    messageCount: number,
    properties: Uint8Array,
    body: BodyPieces,
    frameMax: number,
  ): void {
    const fields = { deliveryTag, redelivered, exchange, routingKey, messageCount };
    this.content(channel, "basic.get-ok", fields, properties, body, frameMax);
  }

  /** `basic.return` with its content. */
  return(
    channel: number,
    replyCode: number,
    replyText: string,
    exchange: string,
    routingKey: string,
    properties: Uint8Array,
    body: BodyPieces,
    frameMax: number,
  ): void {
    const fields = { replyCode, replyText, exchange, routingKey };
    this.content(channel, "basic.return", fields, properties, body, frameMax);
  }

  /** Any method with content: `basic.publish`, `return`, `deliver` or `get-ok`. */
  content<N extends ContentMethodName>(
    channel: number,
    name: N,
    fields: FieldsInput<N>,
    properties: Uint8Array,
    body: BodyPieces,
    frameMax: number,
  ): void {
    this.methods(channel, name, fields);
    this.#content(channel, properties, body, frameMax);
  }

  /** `basic.ack`. */
  ack(channel: number, deliveryTag: number, multiple: boolean): void {
    this.#settle(channel, ACK, deliveryTag, multiple ? 1 : 0);
  }

  /** `basic.nack`; `requeue` means nothing when a server sends it. */
  nack(channel: number, deliveryTag: number, multiple: boolean, requeue = false): void {
    this.#settle(channel, NACK, deliveryTag, (multiple ? 1 : 0) | (requeue ? 2 : 0));
  }

  /** A heartbeat frame. */
  heartbeat(): void {
    const slab = this.#slab.reserve(FRAME_OVERHEAD);
    this.#slab.end = endFrame(slab, this.#slab.end, putHeader(slab, this.#slab.end, FrameType.HEARTBEAT, 0));
  }

  /** Octets as they are: a protocol header, or frames encoded before. */
  raw(octets: Uint8Array): void {
    this.#slab.add(octets);
  }

  /**
   * Hands everything to the sink: one `write` where it is one slab, else corked writes.
   *
   * @returns what the last `write` returned: false where the sink wants to drain first.
   */
  flush(sink: ByteSink): boolean {
    return this.#slab.flush(sink);
  }

  #settle(channel: number, methodId: number, deliveryTag: number, bits: number): void {
    const slab = this.#slab.reserve(FRAME_OVERHEAD + 13);
    const frame = this.#slab.end;
    const at = putLonglong(slab, putIds(slab, frame, channel, BASIC, methodId), deliveryTag);
    slab[at] = bits;
    this.#slab.end = endFrame(slab, frame, at + 1);
  }

  #content(channel: number, properties: Uint8Array, body: BodyPieces, frameMax: number): void {
    const pieces = body instanceof Uint8Array ? undefined : body;
    let size = 0;
    if (pieces === undefined) size = (body as Uint8Array).length;
    else for (const piece of pieces) size += piece.length;

    const slab = this.#slab.reserve(FRAME_OVERHEAD + 12 + properties.length);
    const frame = this.#slab.end;
    let at = putHeader(slab, frame, FrameType.HEADER, channel);
    slab[at] = 0;
    slab[at + 1] = BASIC_CLASS_ID;
    slab[at + 2] = 0; // weight
    slab[at + 3] = 0;
    at = putLonglong(slab, at + 4, size);
    slab.set(properties, at);
    this.#slab.end = endFrame(slab, frame, at + properties.length);
    if (size === 0) return;

    const room = frameMax > 0 ? Math.max(1, frameMax - FRAME_OVERHEAD) : size;
    if (pieces === undefined && size <= room) this.#frame(FrameType.BODY, channel, body as Uint8Array);
    else this.#bodyFrames(channel, pieces ?? [body as Uint8Array], size, room);
  }

  #bodyFrames(channel: number, pieces: readonly Uint8Array[], size: number, room: number): void {
    let index = 0;
    let offset = 0; // within pieces[index]
    for (let left = size; left > 0; ) {
      let missing = Math.min(room, left); // of this frame
      left -= missing;
      this.#frameHeader(FrameType.BODY, channel, missing);
      while (missing > 0) {
        const piece = pieces[index] as Uint8Array; // the sizes add up, so there is one
        const taken = Math.min(missing, piece.length - offset);
        this.#slab.add(taken === piece.length ? piece : piece.subarray(offset, offset + taken));
        missing -= taken;
        offset += taken;
        if (offset === piece.length) {
          index++;
          offset = 0;
        }
      }
      this.#frameEnd();
    }
  }

  #frame(type: FrameType, channel: number, payload: Uint8Array): void {
    this.#frameHeader(type, channel, payload.length);
    this.#slab.add(payload);
    this.#frameEnd();
  }

  #frameHeader(type: FrameType, channel: number, size: number): void {
    const slab = this.#slab.reserve(FRAME_OVERHEAD);
    putLong(slab, this.#slab.end + 3, size);
    this.#slab.end = putHeader(slab, this.#slab.end, type, channel);
  }

  #frameEnd(): void {
    const slab = this.#slab.reserve(1);
    slab[this.#slab.end++] = FRAME_END;
  }
}

function putHeader(slab: Buffer, at: number, type: FrameType, channel: number): number {
  slab[at] = type;
  slab[at + 1] = channel >>> 8;
  slab[at + 2] = channel;
  return at + 7; // the size is known at the frame's end
}

function putIds(slab: Buffer, at: number, channel: number, classId: number, methodId: number): number {
  const payload = putHeader(slab, at, FrameType.METHOD, channel);
  slab[payload] = 0;
  slab[payload + 1] = classId;
  slab[payload + 2] = 0;
  slab[payload + 3] = methodId;
  return payload + 4;
}

/** Writes the size of the frame that starts at `start`, and its end; returns where the next one starts. */
function endFrame(slab: Buffer, start: number, end: number): number {
  putLong(slab, start + 3, end - start - 7);
  slab[end] = FRAME_END;
  return end + 1;
}
