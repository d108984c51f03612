/**
 * A message as it came from the bus, before anybody asked what it is.
 *
 * Responsibilities: subject, reply, header block and payload, each decoded only where it is asked for.
 * Used by: wire and client-wire (make them), publisher, ask, incoming, status (read them). Separate because the octets
 * read by hand and the client's own message must look alike. A frame is good during the call that hands it over;
 * its `head` and `body` are views that may be kept.
 */
import { Buffer } from "node:buffer";
import type { Msg } from "@nats-io/nats-core";

const SPACE = 32;
const CR = 13;
const ZERO = 48;
const H = 72;
/** Octets of `MSG ` and `HMSG `. */
const MSG = 4;
const HMSG = 5;

export interface Frame {
  readonly subject: string;
  /** Empty where there is none. */
  readonly reply: string;
  /** The header block; undefined where there is none. */
  readonly head: Buffer | undefined;
  readonly body: Uint8Array;
  /** Octets of subject, reply, headers and payload: what the server counts against a pull's max_bytes. */
  readonly weight: number;
  /** The decimal number that the subject ends in, from that character on. */
  number(from: number): number;
}

/** A frame in octets. One object for all of a connection: {@link OctetFrame.read} points it at the next one. */
export class OctetFrame implements Frame {
  #octets: Buffer = Buffer.alloc(0);
  #subjectStart = 0;
  #subjectEnd = 0;
  #replyStart = 0;
  #replyEnd = 0;
  #payload = 0;
  #headLength = 0;
  #size = 0;
  #last: Buffer = Buffer.alloc(0);
  #lastSubject = "";
  /** The subscription's number. */
  sid = 0;

  /** Reads the `MSG` or `HMSG` line at `at`; false where it is not whole. */
  read(octets: Buffer, at: number): boolean {
    this.#octets = octets;
    const hasHead = octets[at] === H;
    let start = at + (hasHead ? HMSG : MSG);
    let end = endOfWord(octets, start);
    this.#subjectStart = start;
    this.#subjectEnd = end;
    start = end + 1;
    end = endOfWord(octets, start);
    if (end >= octets.length) return false;
    this.sid = toNumber(octets, start, end);
    start = end + 1;
    end = endOfWord(octets, start);
    // One word is left for the size (two with a header block); one more is the reply, and stands first.
    let next = end + 1;
    let nextEnd = octets[end] === CR ? end : endOfWord(octets, next);
    const isReply = hasHead ? octets[nextEnd] === SPACE : octets[end] === SPACE;
    this.#replyStart = start;
    this.#replyEnd = isReply ? end : start;
    if (isReply) {
      start = next;
      end = nextEnd;
      next = end + 1;
      nextEnd = hasHead ? endOfWord(octets, next) : end;
    }
    this.#headLength = hasHead ? toNumber(octets, start, end) : 0;
    this.#size = hasHead ? toNumber(octets, next, nextEnd) : toNumber(octets, start, end);
    this.#payload = nextEnd + 2;
    return nextEnd + 1 < octets.length;
  }

  /** Where the frame after this one begins. */
  get end(): number {
    return this.#payload + this.#size + 2;
  }

  get subject(): string {
    const octets = this.#octets;
    const last = this.#last;
    const start = this.#subjectStart;
    const length = this.#subjectEnd - start;
    // A connection's messages often share one: the same string again spares its decoding and its hash.
    let i = length === last.length ? 0 : length;
    while (i < length && octets[start + i] === last[i]) i++;
    if (i < length || length !== last.length) {
      this.#last = Buffer.from(octets.subarray(start, this.#subjectEnd));
      this.#lastSubject = this.#last.toString("utf8");
    }
    return this.#lastSubject;
  }

  get reply(): string {
    return this.#octets.toString("utf8", this.#replyStart, this.#replyEnd);
  }

  get head(): Buffer | undefined {
    if (this.#headLength === 0) return undefined;
    return this.#octets.subarray(this.#payload, this.#payload + this.#headLength);
  }

  get body(): Uint8Array {
    return this.#octets.subarray(this.#payload + this.#headLength, this.#payload + this.#size);
  }

  get weight(): number {
    return this.#subjectEnd - this.#subjectStart + this.#replyEnd - this.#replyStart + this.#size;
  }

  number(from: number): number {
    return toNumber(this.#octets, this.#subjectStart + from, this.#subjectEnd);
  }
}

/** The first space or CR from there on; the length where there is none. */
function endOfWord(octets: Buffer, from: number): number {
  const { length } = octets;
  let at = from;
  while (at < length) {
    const octet = octets[at];
    if (octet === SPACE || octet === CR) return at;
    at++;
  }
  return length;
}

function toNumber(octets: Buffer, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + ((octets[at] ?? ZERO) - ZERO);
  return value;
}

/** The client's message as a frame. */
export class ClientFrame implements Frame {
  readonly #message: Msg;

  constructor(message: Msg) {
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get reply(): string {
    return this.#message.reply ?? "";
  }

  get head(): Buffer | undefined {
    const { headers } = this.#message;
    if (headers === undefined) return undefined;
    let block = `NATS/1.0${headers.code > 0 ? ` ${headers.code} ${headers.description}` : ""}\r\n`;
    for (const [name, values] of headers) for (const value of values) block += `${name}: ${value}\r\n`;
    return Buffer.from(`${block}\r\n`);
  }

  get body(): Uint8Array {
    return this.#message.data;
  }

  get weight(): number {
    // Every message of the client has it; only its published type leaves it out.
    return (this.#message as unknown as { size(): number }).size();
  }

  number(from: number): number {
    return Number(this.#message.subject.slice(from));
  }
}
