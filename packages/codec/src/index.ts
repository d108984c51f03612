// @amqp/codec: AMQP 0-9-1 on the wire, octets to values and back, exact and without dependencies.
// Everything that other packages may use is named here one by one; nobody imports another file of this package.
export { type Assembled, CommandAssembler } from "./commands.ts";
export {
  BASIC_CLASS_ID,
  FRAME_END,
  FRAME_HEADER_SIZE,
  FRAME_MIN_SIZE,
  FRAME_OVERHEAD,
  FrameType,
  PROTOCOL_HEADER,
  ReplyCode,
  type ReplyCodeName,
} from "./constants.ts";
export { CodecError, type CodecErrorCode } from "./error.ts";
export { formatCommand, formatTable, formatValue } from "./format.ts";
export { FrameDecoder, type FrameDecoderOptions, type FrameListener, parseProtocolHeader } from "./frames.ts";
export { decodeMethod, encodeMethod, frame, hasContent, methodFrame, methodName } from "./method.ts";
export { METHODS, type MethodSpec, type Sender } from "./methods.ts";
export { fromPlain, type PlainTable, type PlainValue, toPlain } from "./plain.ts";
export {
  checkProperties,
  decodeProperties,
  encodeProperties,
  expirationOf,
  NO_PROPERTIES,
  PROPERTIES,
  type Properties,
  type PropertiesInput,
  type PropertyName,
  type PropertyValue,
  peekProperty,
} from "./properties.ts";
export { encodeShortstr, SHORTSTR_MAX, truncateShortstr } from "./shortstr.ts";
export { type ByteSink, type Shortstr, Slab } from "./slab.ts";
export {
  type Decimal,
  decodeTable,
  encodeTable,
  FIELD_TAGS,
  type FieldTable,
  type FieldType,
  type FieldValue,
  getField,
  TABLE_DEPTH_MAX,
} from "./table.ts";
export { type Direction, readTrace, type TraceEntry, type TraceOptions } from "./trace.ts";
export type {
  ClassName,
  ClassOf,
  ContentMethod,
  ContentMethodName,
  DecodedTypes,
  EncodableTypes,
  FieldsInput,
  FieldsOf,
  Method,
  MethodName,
  MethodOf,
  MethodsOf,
  WireType,
} from "./types.ts";
export { type BodyPieces, Writer } from "./writer.ts";
