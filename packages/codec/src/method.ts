// The engine under the method table: payload of a method frame ↔ method, driven by METHODS alone.
// The broker's channels decode every method through it; the writer encodes all but the hottest ones through it.
// Separate from the table because it is code and the table is data: a method is added there, never here.
import { FRAME_END, FRAME_OVERHEAD, FrameType, ReplyCode } from "./constants.ts";
import { CodecError } from "./error.ts";
import { METHODS, type MethodSpec } from "./methods.ts";
import { Octets } from "./octets.ts";
import { asBuffer, Reader } from "./reader.ts";
import { readTable, writeTable } from "./table.ts";
import type { ContentMethodName, DecodedTypes, FieldsInput, FieldsOf, Method, MethodName, WireType } from "./types.ts";

interface Row extends MethodSpec {
  readonly name: MethodName;
  /** In place of the engine, where there is one. */
  readonly read: ((reader: Reader) => Record<string, DecodedTypes[WireType]>) | undefined;
}

/**
 * What comes with every message, straight-line; the tests hold it to what the engine writes. In the order and with the names
 * of the table.
 */
const STRAIGHT: { readonly [N in MethodName]?: (reader: Reader) => FieldsOf<N> } = {
  "basic.publish": (reader) => {
    const ticket = reader.short();
    const exchange = reader.shortstr();
    const routingKey = reader.shortstr();
    const bits = reader.octet();
    return { ticket, exchange, routingKey, mandatory: (bits & 1) !== 0, immediate: (bits & 2) !== 0 };
  },
  "basic.ack": (reader) => ({ deliveryTag: reader.longlong(), multiple: (reader.octet() & 1) !== 0 }),
};

const ROWS: ReadonlyMap<number, Row> = new Map(
  (Object.keys(METHODS) as MethodName[]).map((name) => {
    const spec: MethodSpec = METHODS[name];
    return [(spec.classId << 16) | spec.methodId, { ...spec, name, read: STRAIGHT[name] }];
  }),
);

/** The name of a method by its ids, or undefined where there is none such. */
export function methodName(classId: number, methodId: number): MethodName | undefined {
  return ROWS.get((classId << 16) | methodId)?.name;
}

/** Whether a content header and body frames follow the method. */
export function hasContent(name: MethodName): name is ContentMethodName {
  const spec: MethodSpec = METHODS[name];
  return spec.content === true;
}

/**
 * Decodes the payload of a method frame. Longstrs and byte values are views on `payload`.
 *
 * @throws CodecError 501 where the payload is too short to name a method, 503 for a method that AMQP 0-9-1 does not
 * have, 502 where the fields do not fill the payload exactly or hold what their type forbids; class and method are on
 * the error as far as they are known. (RabbitMQ 4 says 501 for the last kind and drops the socket for an unknown
 * method; the standard's codes are sent here.)
 */
export function decodeMethod(payload: Uint8Array): Method {
  const octets = asBuffer(payload);
  if (octets.length < 4) {
    throw new CodecError(ReplyCode.FRAME_ERROR, `a method frame of ${octets.length} octets names no method`);
  }
  const id = octets.readUInt32BE(0);
  const row = ROWS.get(id | 0);
  if (row === undefined) {
    const [classId, methodId] = [id >>> 16, id & 0xffff];
    throw new CodecError(ReplyCode.COMMAND_INVALID, `unknown method ${classId}.${methodId}`, classId, methodId);
  }
  try {
    const reader = new Reader(octets, 4);
    const fields = row.read === undefined ? readFields(reader, row.fields) : row.read(reader);
    if (reader.remaining > 0) throw new CodecError(ReplyCode.SYNTAX_ERROR, `${reader.remaining} octets too many`);
    // The row's field list made these fields, which is what FieldsOf computes; TypeScript cannot follow that.
    return { name: row.name, fields } as unknown as Method;
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    throw new CodecError(error.replyCode, `cannot decode ${row.name}: ${error.reason}`, row.classId, row.methodId);
  }
}

function readFields(reader: Reader, rows: MethodSpec["fields"]): Record<string, DecodedTypes[WireType]> {
  const fields: Record<string, DecodedTypes[WireType]> = {};
  let bits = 0;
  let mask = 0x100; // past the last bit: the next bit field starts a new octet
  for (const [name, type] of rows) {
    if (type === "bit") {
      if (mask > 0x80) {
        bits = reader.octet();
        mask = 1;
      }
      fields[name] = (bits & mask) !== 0;
      mask <<= 1;
    } else {
      mask = 0x100;
      fields[name] = readField(reader, type);
    }
  }
  return fields;
}

function readField(reader: Reader, type: Exclude<WireType, "bit">): DecodedTypes[WireType] {
  switch (type) {
    case "octet":
      return reader.octet();
    case "short":
      return reader.short();
    case "long":
      return reader.long();
    case "longlong":
    case "timestamp":
      return reader.longlong();
    case "shortstr":
      return reader.shortstr();
    case "longstr":
      return reader.longstr();
    case "table":
      return readTable(reader);
  }
}

/**
 * The payload of a method frame: class id, method id, fields.
 *
 * @throws CodecError 502 where a field's value does not fit its wire type, e.g. a shortstr of more than 255 octets.
 */
export function encodeMethod<N extends MethodName>(name: N, fields: FieldsInput<N>): Buffer {
  const octets = new Octets();
  writeMethod(octets, name, fields);
  return octets.take();
}

/** A whole method frame, as {@link encodeMethod} with type, channel, size and frame end. */
export function methodFrame<N extends MethodName>(channel: number, name: N, fields: FieldsInput<N>): Buffer {
  const octets = new Octets();
  octets.octet(FrameType.METHOD);
  octets.short(channel);
  octets.sized(() => writeMethod(octets, name, fields));
  octets.octet(FRAME_END);
  return octets.take();
}

/** A whole frame around any payload. */
export function frame(type: FrameType, channel: number, payload: Uint8Array): Buffer {
  const octets = new Octets(payload.length + FRAME_OVERHEAD);
  octets.octet(type);
  octets.short(channel);
  octets.longstr(payload);
  octets.octet(FRAME_END);
  return octets.take();
}

/** Writes class id, method id and fields. */
export function writeMethod<N extends MethodName>(octets: Octets, name: N, fields: FieldsInput<N>): void {
  const spec: MethodSpec = METHODS[name];
  const values = fields as Readonly<Record<string, unknown>>;
  octets.short(spec.classId);
  octets.short(spec.methodId);
  let bits = -1; // the octet of bits being gathered, -1 between such octets
  let mask = 1;
  for (const [field, type] of spec.fields) {
    const value = values[field];
    if (type === "bit") {
      if (bits < 0) {
        bits = 0;
        mask = 1;
      }
      if (value === true) bits |= mask;
      mask <<= 1;
    } else {
      if (bits >= 0) octets.octet(bits);
      bits = -1;
      writeField(octets, type, value);
    }
  }
  if (bits >= 0) octets.octet(bits);
}

// The types of FieldsInput vouch for the values; what they cannot say (ranges, lengths) Octets checks.
function writeField(octets: Octets, type: Exclude<WireType, "bit">, value: unknown): void {
  switch (type) {
    case "octet":
      octets.octet((value as number | undefined) ?? 0);
      break;
    case "short":
      octets.short((value as number | undefined) ?? 0);
      break;
    case "long":
      octets.long((value as number | undefined) ?? 0);
      break;
    case "longlong":
    case "timestamp":
      octets.longlong((value as bigint | number | undefined) ?? 0);
      break;
    case "shortstr":
      octets.shortstr((value as string | undefined) ?? "");
      break;
    case "longstr":
      octets.longstr((value as Uint8Array | string | undefined) ?? "");
      break;
    case "table":
      writeTable(octets, (value as Parameters<typeof writeTable>[1] | undefined) ?? []);
      break;
  }
}
