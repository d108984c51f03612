// The numbers of AMQP 0-9-1: frame types, frame sizes, reply codes and the protocol header.
// Every other file of this package and the broker's table of refusals read them here. Separate because they are
// data of the standard (docs/spec/amqp-0-9-1.json is compared with them in a test) and belong to no one part.

/** The first octet of a frame (AMQP 4.2.3). */
export const FrameType = { METHOD: 1, HEADER: 2, BODY: 3, HEARTBEAT: 8 } as const;
/** One of the four frame types. */
export type FrameType = (typeof FrameType)[keyof typeof FrameType];

/** The last octet of every frame. */
export const FRAME_END = 0xce;
/** Octets of a frame before its payload: type, channel and size. */
export const FRAME_HEADER_SIZE = 7;
/** Octets of a frame that are not payload: the header and the frame end. A frame-max counts them. */
export const FRAME_OVERHEAD = 8;
/** The least frame-max that may be negotiated, in octets (AMQP 1.5.1.4 `frame-min-size`). */
export const FRAME_MIN_SIZE = 4096;

/** "AMQP", 0, then version 0-9-1: the eight octets that open a connection (AMQP 4.2.2). */
export const PROTOCOL_HEADER: readonly [65, 77, 81, 80, 0, 0, 9, 1] = [65, 77, 81, 80, 0, 0, 9, 1];

/** The class id of `basic`, the only class with content. */
export const BASIC_CLASS_ID = 60;

/** The reply codes of AMQP 0-9-1 by name. */
export const ReplyCode = {
  REPLY_SUCCESS: 200,
  CONTENT_TOO_LARGE: 311,
  NO_ROUTE: 312,
  NO_CONSUMERS: 313,
  CONNECTION_FORCED: 320,
  INVALID_PATH: 402,
  ACCESS_REFUSED: 403,
  NOT_FOUND: 404,
  RESOURCE_LOCKED: 405,
  PRECONDITION_FAILED: 406,
  FRAME_ERROR: 501,
  SYNTAX_ERROR: 502,
  COMMAND_INVALID: 503,
  CHANNEL_ERROR: 504,
  UNEXPECTED_FRAME: 505,
  RESOURCE_ERROR: 506,
  NOT_ALLOWED: 530,
  NOT_IMPLEMENTED: 540,
  INTERNAL_ERROR: 541,
} as const;
/** The name of a reply code. */
export type ReplyCodeName = keyof typeof ReplyCode;
/** One of the reply codes. */
export type ReplyCode = (typeof ReplyCode)[ReplyCodeName];
