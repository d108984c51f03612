// Assembles the frames of one channel into commands: a method alone, or a method with its content (AMQP 4.2.6).
// Each channel of the broker has one. Pure: no channel, socket or clock is known here, and what the peer did wrong
// comes back as a value with the texts of RabbitMQ. Separate from frames.ts because its state is the channel's.
//
//   idle ──method with content──► header ──header, size > 0──► body ──last body frame──► idle
//   idle ──other method──► idle             └─size 0──► idle      └─discard()──► skip ──last body frame──► idle
import { Body } from "./body.ts";
import { FrameType, ReplyCode } from "./constants.ts";
import { CodecError, type CodecErrorCode } from "./error.ts";
import { decodeMethod, hasContent } from "./method.ts";
import { METHODS, type MethodSpec } from "./methods.ts";
import { checkProperties } from "./properties.ts";
import { asBuffer } from "./reader.ts";
import type { ContentMethod, Method } from "./types.ts";

/** What a frame led to. */
export type Assembled =
  | { readonly kind: "need-more" }
  /**
   * The content header was read and body frames follow: the moment to refuse a body by its size
   * ({@link CommandAssembler.discard}). Just process the next frames to go on. Not seen for an empty body.
   */
  | {
      readonly kind: "header";
      readonly method: ContentMethod;
      readonly properties: Uint8Array;
      readonly bodySize: number;
    }
  /** A method without content. */
  | {
      readonly kind: "command";
      readonly content: false;
      readonly method: Exclude<Method, ContentMethod>;
      readonly properties: undefined;
      readonly body: undefined;
      readonly bodySize: 0;
    }
  /** A method with content: property flags and list as they came, and the body in pieces; an empty body has none. */
  | {
      readonly kind: "command";
      readonly content: true;
      readonly method: ContentMethod;
      readonly properties: Uint8Array;
      readonly body: readonly Uint8Array[];
      readonly bodySize: number;
    }
  /** A connection error: the reply code and text, and the class and method to name in connection.close. */
  | {
      readonly kind: "error";
      readonly code: CodecErrorCode;
      readonly text: string;
      readonly classId: number;
      readonly methodId: number;
      readonly error: CodecError;
    };

type State =
  | { readonly at: "idle" }
  | { readonly at: "header"; readonly method: ContentMethod }
  | {
      readonly at: "body";
      readonly method: ContentMethod;
      readonly properties: Uint8Array;
      readonly body: Body;
      readonly bodySize: number;
      remaining: number;
    }
  | { readonly at: "skip"; readonly method: ContentMethod; remaining: number };

const IDLE: State = { at: "idle" };
const NEED_MORE: Assembled = { kind: "need-more" };
const CONTENT_HEADER_SIZE = 12; // class, weight, body size; then property flags and list

/** Assembles one channel's method, header and body frames; heartbeats are not for it. */
export class CommandAssembler {
  #state: State = IDLE;

  /** Between commands: the next frame is to be a method. */
  get idle(): boolean {
    return this.#state.at === "idle";
  }

  /**
   * Takes the channel's next frame. A method with a malformed payload, a frame out of its order (505) and a malformed
   * content header (501, 502) are errors; after one the assembler is done with, as the connection is.
   */
  process(type: FrameType, payload: Uint8Array): Assembled {
    try {
      switch (this.#state.at) {
        case "idle":
          return this.#takeMethod(type, payload);
        case "header":
          return this.#takeHeader(type, payload, this.#state.method);
        case "body":
        case "skip":
          return this.#takeBody(type, payload, this.#state);
      }
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      const { replyCode: code, message: text, classId, methodId } = error;
      return { kind: "error", code, text, classId, methodId, error };
    }
  }

  /** After a "header": the body frames to come are dropped as they arrive, and no command comes of them. */
  discard(): void {
    if (this.#state.at === "body") {
      this.#state = { at: "skip", method: this.#state.method, remaining: this.#state.remaining };
    }
  }

  #takeMethod(type: FrameType, payload: Uint8Array): Assembled {
    if (type !== FrameType.METHOD) throw unexpected("expected method frame, got non method frame instead");
    const method = decodeMethod(payload);
    if (!isContentMethod(method)) {
      return { kind: "command", content: false, method, properties: undefined, body: undefined, bodySize: 0 };
    }
    this.#state = { at: "header", method };
    return NEED_MORE;
  }

  #takeHeader(type: FrameType, payload: Uint8Array, method: ContentMethod): Assembled {
    const { classId, methodId }: MethodSpec = METHODS[method.name];
    if (type !== FrameType.HEADER) {
      const text = `expected content header for class ${classId}, got non content header frame instead`;
      throw unexpected(text, method);
    }
    const octets = asBuffer(payload);
    if (octets.length < CONTENT_HEADER_SIZE) {
      throw new CodecError(ReplyCode.FRAME_ERROR, `a content header of ${octets.length} octets`, classId, methodId);
    }
    const headerClass = octets.readUInt16BE(0);
    if (headerClass !== classId) {
      const text = `expected content header for class ${classId}, got one for class ${headerClass} instead`;
      throw unexpected(text, method);
    }
    // The weight (2 octets) is unused. A size of 2^53 and more loses its last digits, which no limit lets through.
    const bodySize = octets.readUInt32BE(4) * 2 ** 32 + octets.readUInt32BE(8);
    const properties = octets.subarray(CONTENT_HEADER_SIZE);
    try {
      checkProperties(properties);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      throw new CodecError(error.replyCode, error.reason, classId, methodId);
    }
    if (bodySize === 0) {
      this.#state = IDLE;
      return { kind: "command", content: true, method, properties, body: [], bodySize };
    }
    this.#state = { at: "body", method, properties, body: new Body(), bodySize, remaining: bodySize };
    return { kind: "header", method, properties, bodySize };
  }

  #takeBody(type: FrameType, payload: Uint8Array, state: State & { at: "body" | "skip" }): Assembled {
    if (type !== FrameType.BODY) {
      throw unexpected("expected content body, got non content body frame instead", state.method);
    }
    if (payload.length > state.remaining) {
      const excess = payload.length - state.remaining;
      throw unexpected(`content body exceeds the size in its header by ${excess} octets`, state.method);
    }
    if (state.at === "body") state.body.add(payload, state.remaining);
    state.remaining -= payload.length;
    if (state.remaining > 0) return NEED_MORE;
    this.#state = IDLE;
    if (state.at === "skip") return NEED_MORE;
    const { method, properties, body, bodySize } = state;
    return { kind: "command", content: true, method, properties, body: body.take(), bodySize };
  }
}

function isContentMethod(method: Method): method is ContentMethod {
  return hasContent(method.name);
}

function unexpected(text: string, method?: ContentMethod): CodecError {
  const spec: MethodSpec | undefined = method && METHODS[method.name];
  return new CodecError(ReplyCode.UNEXPECTED_FRAME, text, spec?.classId, spec?.methodId);
}
