// A captured byte stream as a sequence of commands: the tooling side of the codec.
// For debugging, tests and protocol tools, with format.ts to print them; the broker itself does not use it. Separate
// from commands.ts because it watches a whole connection (all channels, heartbeats, protocol header), and reports what
// is malformed instead of closing anything.
import { CommandAssembler } from "./commands.ts";
import { FrameType, PROTOCOL_HEADER } from "./constants.ts";
import { CodecError } from "./error.ts";
import { FrameDecoder } from "./frames.ts";
import { decodeProperties, type Properties } from "./properties.ts";
import { asBuffer } from "./reader.ts";
import type { ContentMethod, Method } from "./types.ts";

/** Which side of the connection sent what was captured. */
export type Direction = "client" | "server";

/** How to read a trace. */
export interface TraceOptions {
  /** Copied into each entry, to tell the two streams of a connection apart. */
  readonly direction?: Direction;
  /** The most octets of a frame, as a frame-max counts; 0, the default, is no limit. */
  readonly maxFrameSize?: number;
}

interface TraceOrigin {
  readonly direction?: Direction;
  readonly channel: number;
}

/** What stands in a byte stream, in order. */
export type TraceEntry =
  /** `AMQP` and a version: the start of a connection, or a server's answer to a foreign one. */
  | (TraceOrigin & { readonly kind: "protocol-header"; readonly octets: Uint8Array })
  | (TraceOrigin & { readonly kind: "heartbeat" })
  /** A method without content. */
  | (TraceOrigin & { readonly kind: "method"; readonly method: Exclude<Method, ContentMethod> })
  /** A method with its content, once the body was whole. */
  | (TraceOrigin & {
      readonly kind: "message";
      readonly method: ContentMethod;
      readonly properties: Properties;
      readonly body: readonly Uint8Array[];
      readonly bodySize: number;
    })
  /** Octets that are not AMQP. After a malformed frame (channel 0) the trace ends; a channel's error ends its command. */
  | (TraceOrigin & { readonly kind: "malformed"; readonly error: CodecError })
  /** The stream ended inside a frame or a content: so many octets, or commands, were cut short. */
  | (TraceOrigin & { readonly kind: "truncated"; readonly octets: number });

/**
 * Reads what one side of a connection sent. The stream may start at the protocol header or at any frame, and be cut
 * into chunks anyhow. Never throws for what the octets are: see the kinds "malformed" and "truncated".
 */
export function* readTrace(
  stream: Uint8Array | Iterable<Uint8Array>,
  options: TraceOptions = {},
): Generator<TraceEntry, void, undefined> {
  const trace = new Trace(options);
  for (const chunk of stream instanceof Uint8Array ? [stream] : stream) {
    yield* trace.push(asBuffer(chunk));
    if (trace.lost) return;
  }
  yield* trace.end();
}

class Trace {
  /** A frame was malformed: where the next one starts is unknown. */
  lost: boolean = false;
  readonly #direction: { readonly direction?: Direction };
  readonly #frames: FrameDecoder;
  readonly #channels = new Map<number, CommandAssembler>();
  #head: Buffer | undefined = Buffer.alloc(0); // the stream's first octets, until they are known to be a header or not

  constructor({ direction, maxFrameSize = 0 }: TraceOptions) {
    this.#direction = direction === undefined ? {} : { direction };
    this.#frames = new FrameDecoder({ maxFrameSize });
  }

  push(chunk: Buffer): TraceEntry[] {
    const entries: TraceEntry[] = [];
    let frames = chunk;
    if (this.#head !== undefined) {
      const head = Buffer.concat([this.#head, chunk]);
      if (startsHeader(head)) {
        this.#head = head;
        if (head.length < PROTOCOL_HEADER.length) return entries;
        const octets = head.subarray(0, PROTOCOL_HEADER.length);
        entries.push({ kind: "protocol-header", ...this.#direction, channel: 0, octets });
        frames = head.subarray(PROTOCOL_HEADER.length);
      } else frames = head;
      this.#head = undefined;
    }
    try {
      this.#frames.push(frames, (type, channel, payload) => {
        const entry = this.#take(type, channel, payload);
        if (entry !== undefined) entries.push(entry);
      });
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.lost = true;
      entries.push({ kind: "malformed", ...this.#direction, channel: 0, error });
    }
    return entries;
  }

  end(): TraceEntry[] {
    const entries: TraceEntry[] = [];
    for (const [channel, assembler] of this.#channels) {
      if (!assembler.idle) entries.push({ kind: "truncated", ...this.#direction, channel, octets: 0 });
    }
    const octets = this.#frames.bytesHeld + (this.#head?.length ?? 0);
    if (octets > 0) entries.push({ kind: "truncated", ...this.#direction, channel: 0, octets });
    return entries;
  }

  #take(type: FrameType, channel: number, payload: Buffer): TraceEntry | undefined {
    const origin = { ...this.#direction, channel };
    if (type === FrameType.HEARTBEAT) return { kind: "heartbeat", ...origin };
    let assembler = this.#channels.get(channel);
    if (assembler === undefined) {
      assembler = new CommandAssembler();
      this.#channels.set(channel, assembler);
    }
    const result = assembler.process(type, payload);
    switch (result.kind) {
      case "need-more":
      case "header":
        return undefined;
      case "error":
        this.#channels.delete(channel);
        return { kind: "malformed", ...origin, error: result.error };
      case "command": {
        if (!result.content) return { kind: "method", ...origin, method: result.method };
        const { method, body, bodySize } = result;
        try {
          return {
            kind: "message",
            ...origin,
            method,
            properties: decodeProperties(result.properties),
            body,
            bodySize,
          };
        } catch (error) {
          if (!(error instanceof CodecError)) throw error;
          return { kind: "malformed", ...origin, error };
        }
      }
    }
  }
}

// A frame's first octet is its type, which is no "A", so a protocol header is recognised by "AMQP" alone.
function startsHeader(head: Buffer): boolean {
  for (let i = 0; i < Math.min(head.length, 4); i++) if (head[i] !== PROTOCOL_HEADER[i]) return false;
  return true;
}
