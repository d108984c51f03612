/**
 * The data path by hand: PUB and HPUB written, MSG and HMSG read, on the client's own socket.
 *
 * Responsibilities: gathers what a turn publishes and writes it at once, in the order of the calls, behind what the client
 * has gathered; takes the messages of its own subscriptions out of the stream before the client parses it.
 * Used by: wire. Separate because it is the hot path at its lowest. The subscriptions themselves are the client's, so
 * that it renews them when it connects again; whatever is not a message of theirs is the client's, octet for octet.
 */
import { Buffer } from "node:buffer";
import { Slab } from "@amqp/codec";
import type { NatsConnection } from "@nats-io/nats-core";
import { NOWHERE, Standing } from "../standing.ts";
import type { ClientParser, ClientProtocol } from "./seams.ts";
import { type FrameHandler, Splitter, type SplitterListener } from "./splitter.ts";
import type { Outgoing, Wire, WireSubscription } from "./wire.ts";

/** Octets gathered in one turn that leave before its end: the server works on them meanwhile. */
const EARLY: number = 128 * 1024;
/** Subjects whose line is remembered. */
const REMEMBERED = 4_096;
const DIGITS = 16;
const SPACE = 32;
const CR = 13;
const LF = 10;
const ZERO = 48;
const PUB: Buffer = Buffer.from("PUB ");
/** As the client refuses them: they would split the server's lines. */
const WHITESPACE = /[ \n\r\t]/;

export class HandWire implements Wire, SplitterListener {
  stands: () => boolean = () => true;
  readonly #connection: NatsConnection;
  readonly #protocol: ClientProtocol;
  readonly #slab: Slab = new Slab();
  readonly #standing: Standing = new Standing(() => this.stands());
  readonly #handlers: Map<number, FrameHandler> = new Map<number, FrameHandler>();
  /** `HPUB <subject> <inbox>`, by subject. */
  readonly #lines: Map<string, Buffer> = new Map<string, Buffer>();
  #linesInbox = "";
  #parser: ClientParser;
  #splitter: Splitter = new Splitter(this);
  #scheduled: boolean = false;

  constructor(connection: NatsConnection, protocol: ClientProtocol) {
    this.#connection = connection;
    this.#protocol = protocol;
    this.#parser = protocol.parser;
    this.#intercept();
  }

  subscribe(subject: string, handler: FrameHandler, failed: (error: Error) => void): WireSubscription {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error) => {
        if (error !== null) failed(error);
      },
    });
    const sid = subscription.getID();
    this.#handlers.set(sid, handler);
    return {
      drain: async () => {
        this.flush();
        try {
          await subscription.drain();
        } finally {
          this.#handlers.delete(sid);
        }
      },
      unsubscribe: () => {
        this.flush();
        this.#handlers.delete(sid);
        subscription.unsubscribe();
      },
    };
  }

  publish(subject: string, reply: string, payload: Uint8Array): void {
    this.#requireOpen();
    const slab = this.#slab.reserve(PUB.length + 3 * (subject.length + reply.length) + DIGITS + 6);
    let at = this.#slab.end;
    slab.set(PUB, at);
    at += PUB.length;
    at += slab.write(subject, at);
    slab[at++] = SPACE;
    if (reply !== "") {
      at += slab.write(reply, at);
      slab[at++] = SPACE;
    }
    at = putNumber(slab, at, payload.length);
    slab[at++] = CR;
    slab[at++] = LF;
    this.#slab.end = at;
    this.#slab.add(payload);
    this.#endLine();
    this.#schedule();
  }

  settle(subject: string, payload: Uint8Array): void {
    this.#standing.need();
    this.publish(subject, "", payload);
  }

  send({ subject, head, body, size }: Outgoing, inbox: string, number: number): void {
    this.#requireOpen();
    const most = this.#protocol.info?.max_payload ?? Number.POSITIVE_INFINITY;
    if (size > most) throw new Error(`a message of ${size} octets where the bus takes ${most}`);
    const line = this.#line(subject, inbox);
    const slab = this.#slab.reserve(line.length + 3 * DIGITS + head.length + 6);
    let at = this.#slab.end;
    slab.set(line, at);
    at = putNumber(slab, at + line.length, number);
    slab[at++] = SPACE;
    at = putNumber(slab, at, head.length);
    slab[at++] = SPACE;
    at = putNumber(slab, at, size);
    slab[at++] = CR;
    slab[at++] = LF;
    slab.set(head, at);
    this.#slab.end = at + head.length;
    for (const piece of body) this.#slab.add(piece);
    this.#endLine();
    this.#schedule();
  }

  flush(): void {
    if (this.#slab.bytesPending === 0) return;
    if (!this.#standing.mayLeave()) {
      this.#slab.flush(NOWHERE);
      // What else was in it is asked again after this, as of any connection that was lost.
      void this.#connection.reconnect().catch(() => undefined);
      return;
    }
    const { connected, transport } = this.#protocol;
    // Without a connection it is dropped, as the client drops what it has when it dials again.
    const socket = connected && transport.socket?.writable === true ? transport.socket : NOWHERE;
    this.#protocol.flushPending();
    this.#slab.flush(socket);
  }

  hurry(): void {
    this.#protocol.flushPending();
  }

  /** SplitterListener. */
  handlerOf(sid: number): FrameHandler | undefined {
    return this.#handlers.get(sid);
  }

  /** SplitterListener. */
  rest(octets: Buffer): void {
    this.#parser.parse(octets);
  }

  /** Stands before the client's parser, also before the one it makes for the next connection. */
  #intercept(): void {
    // A frame that the client has begun to parse is its own to the end.
    let between = this.#parser.state === 0;
    const before: ClientParser = {
      state: -1,
      parse: (chunk) => {
        if (between) this.#splitter.push(asBuffer(chunk));
        else {
          this.#parser.parse(chunk);
          between = this.#parser.state === 0;
        }
      },
    };
    Object.defineProperty(this.#protocol, "parser", {
      configurable: true,
      enumerable: true,
      get: () => before,
      set: (parser: ClientParser) => {
        this.#parser = parser;
        this.#splitter = new Splitter(this);
        between = true;
      },
    });
  }

  #line(subject: string, inbox: string): Buffer {
    if (inbox !== this.#linesInbox || this.#lines.size > REMEMBERED) {
      this.#lines.clear();
      this.#linesInbox = inbox;
    }
    let line = this.#lines.get(subject);
    if (line === undefined) {
      if (subject === "" || WHITESPACE.test(subject)) throw new Error(`'${subject}' is no subject`);
      line = Buffer.from(`HPUB ${subject} ${inbox}`);
      this.#lines.set(subject, line);
    }
    return line;
  }

  #endLine(): void {
    const slab = this.#slab.reserve(2);
    slab[this.#slab.end++] = CR;
    slab[this.#slab.end++] = LF;
  }

  #requireOpen(): void {
    if (this.#connection.isClosed()) throw new Error("the connection to the bus is closed");
  }

  #schedule(): void {
    if (this.#slab.bytesPending > EARLY) this.flush();
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#standing.begin();
    setImmediate(() => {
      this.#scheduled = false;
      this.flush();
    });
  }
}

function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

/** Writes a number in decimal; returns where the next octet goes. */
function putNumber(slab: Buffer, at: number, value: number): number {
  let digits = 1;
  for (let power = 10; power <= value; power *= 10) digits++;
  let rest = value;
  for (let place = at + digits - 1; place >= at; place--) {
    const tens = Math.floor(rest / 10);
    slab[place] = ZERO + rest - tens * 10;
    rest = tens;
  }
  return at + digits;
}
