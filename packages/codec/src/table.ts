// Field tables and arrays with every RabbitMQ type tag, lossless: a table is a list of entries in wire order, each
// value with its type, so that octets → value → octets changes nothing. Methods and properties carry tables; plain.ts
// turns them into ordinary objects. Separate because tables nest: depth is limited here, before the stack or memory is
// spent (AMQP 4.2.5.5; tags as RabbitMQ's errata has them).
import { syntaxError } from "./error.ts";
import { Octets, toInt64 } from "./octets.ts";
import { decodeUtf8, Reader } from "./reader.ts";

/** How deep tables and arrays may nest; deeper is a CodecError 502. */
export const TABLE_DEPTH_MAX = 128;

/** An exact decimal: `unscaled` (unsigned 32 bits) divided by ten to the power of `scale` (0–255). */
export interface Decimal {
  readonly scale: number;
  readonly unscaled: number;
}

/**
 * One value with its type. `raw` keeps the octets where the value alone does not give them back: a true that is not
 * 1, a NaN's payload; the encoder prefers it. A longstr is a string where its octets are UTF-8, else the octets.
 * `int16-standard` and `int64-standard` are the tags `U` and `L` of the published standard; RabbitMQ's are `s` and `l`.
 */
export type FieldValue =
  | { readonly type: "bool"; readonly value: boolean; readonly raw?: Uint8Array }
  | { readonly type: "int8" | "uint8" | "int16" | "uint16" | "int16-standard"; readonly value: number }
  | { readonly type: "int32" | "uint32"; readonly value: number }
  | { readonly type: "int64" | "int64-standard"; readonly value: bigint }
  | { readonly type: "float" | "double"; readonly value: number; readonly raw?: Uint8Array }
  | { readonly type: "decimal"; readonly value: Decimal }
  | { readonly type: "longstr"; readonly value: string | Uint8Array }
  | { readonly type: "bytes"; readonly value: Uint8Array }
  /** Seconds since 1970, unsigned. */
  | { readonly type: "timestamp"; readonly value: bigint }
  | { readonly type: "array"; readonly value: readonly FieldValue[] }
  | { readonly type: "table"; readonly value: FieldTable }
  | { readonly type: "void"; readonly value: null };

/** The name of a field value's type. */
export type FieldType = FieldValue["type"];

/** A table: its entries in wire order. Names may repeat on the wire; then the first counts. */
export type FieldTable = readonly (readonly [name: string, value: FieldValue])[];

/** The tag octet of each type. */
export const FIELD_TAGS: Readonly<Record<FieldType, string>> = {
  bool: "t",
  int8: "b",
  uint8: "B",
  int16: "s",
  uint16: "u",
  "int16-standard": "U",
  int32: "I",
  uint32: "i",
  int64: "l",
  "int64-standard": "L",
  float: "f",
  double: "d",
  decimal: "D",
  longstr: "S",
  bytes: "x",
  timestamp: "T",
  array: "A",
  table: "F",
  void: "V",
};

const TYPE_OF_TAG: readonly (FieldType | undefined)[] = Array.from({ length: 256 }, (_, code) =>
  (Object.keys(FIELD_TAGS) as FieldType[]).find((type) => FIELD_TAGS[type].charCodeAt(0) === code),
);

/** The value of the first entry with that name. */
export function getField(table: FieldTable, name: string): FieldValue | undefined {
  for (const [key, value] of table) if (key === name) return value;
  return undefined;
}

/** Reads a table with its length; 502 for a bad tag, a length that does not add up, or a nesting beyond the limit. */
export function readTable(reader: Reader, depth = 1): FieldTable {
  const inner = enter(reader, depth);
  const entries: [string, FieldValue][] = [];
  while (inner.remaining > 0) entries.push([inner.shortstr(), readValue(inner, depth)]);
  return entries;
}

/** Decodes a table that starts with its 32-bit length and fills `octets` exactly. */
export function decodeTable(octets: Uint8Array): FieldTable {
  const reader = new Reader(octets);
  const table = readTable(reader);
  if (reader.remaining > 0) throw syntaxError(`${reader.remaining} octets after the table`);
  return table;
}

/** The octets of a table, its 32-bit length first. */
export function encodeTable(table: FieldTable): Buffer {
  const octets = new Octets();
  writeTable(octets, table);
  return octets.take();
}

/** Writes a table with its length. */
export function writeTable(octets: Octets, table: FieldTable, depth = 1): void {
  requireDepth(depth);
  octets.sized(() => {
    for (const [name, value] of table) {
      octets.shortstr(name);
      writeValue(octets, value, depth);
    }
  });
}

/** Moves past a table, checking all of it without building a value: what `readTable` refuses for its form, this does. */
export function skipTable(reader: Reader, depth = 1): void {
  const inner = enter(reader, depth);
  while (inner.remaining > 0) {
    inner.skip(inner.octet());
    skipValue(inner, depth);
  }
}

function enter(reader: Reader, depth: number): Reader {
  requireDepth(depth);
  const size = reader.long();
  const start = reader.position;
  reader.skip(size);
  return new Reader(reader.octets, start, start + size);
}

function requireDepth(depth: number): void {
  if (depth > TABLE_DEPTH_MAX) throw syntaxError(`a field table nests at most ${TABLE_DEPTH_MAX} deep`);
}

function readType(reader: Reader): FieldType {
  const tag = reader.octet();
  const type = TYPE_OF_TAG[tag];
  if (type === undefined) throw syntaxError(`unknown field type ${tag}`);
  return type;
}

function readValue(reader: Reader, depth: number): FieldValue {
  const type = readType(reader);
  switch (type) {
    case "bool": {
      const octet = reader.octet();
      return octet > 1 ? { type, value: true, raw: Uint8Array.of(octet) } : { type, value: octet === 1 };
    }
    case "int8":
      return { type, value: (reader.octet() << 24) >> 24 };
    case "uint8":
      return { type, value: reader.octet() };
    case "int16":
    case "int16-standard":
      return { type, value: (reader.short() << 16) >> 16 };
    case "uint16":
      return { type, value: reader.short() };
    case "int32":
      return { type, value: reader.long() | 0 };
    case "uint32":
      return { type, value: reader.long() };
    case "int64":
    case "int64-standard":
      return { type, value: BigInt.asIntN(64, reader.longlong()) };
    case "float":
      return withRaw(type, reader.bytes(4));
    case "double":
      return withRaw(type, reader.bytes(8));
    case "decimal":
      return { type, value: { scale: reader.octet(), unscaled: reader.long() } };
    case "longstr": {
      const octets = reader.longstr();
      return { type, value: decodeUtf8(octets, 0, octets.length) ?? octets };
    }
    case "bytes":
      return { type, value: reader.longstr() };
    case "timestamp":
      return { type, value: reader.longlong() };
    case "array": {
      const inner = enter(reader, depth + 1);
      const values: FieldValue[] = [];
      while (inner.remaining > 0) values.push(readValue(inner, depth + 1));
      return { type, value: values };
    }
    case "table":
      return { type, value: readTable(reader, depth + 1) };
    case "void":
      return { type, value: null };
  }
}

function withRaw(type: "float" | "double", octets: Buffer): FieldValue {
  const value = type === "float" ? octets.readFloatBE(0) : octets.readDoubleBE(0);
  return Number.isNaN(value) ? { type, value, raw: octets } : { type, value };
}

// Octets of the types whose size is fixed.
const FIXED_SIZE: Partial<Record<FieldType, number>> = {
  bool: 1,
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  "int16-standard": 2,
  int32: 4,
  uint32: 4,
  int64: 8,
  "int64-standard": 8,
  float: 4,
  double: 8,
  decimal: 5,
  timestamp: 8,
  void: 0,
};

function skipValue(reader: Reader, depth: number): void {
  const type = readType(reader);
  if (type === "table") skipTable(reader, depth + 1);
  else if (type === "array") {
    const inner = enter(reader, depth + 1);
    while (inner.remaining > 0) skipValue(inner, depth + 1);
  } else reader.skip(FIXED_SIZE[type] ?? reader.long());
}

function writeValue(octets: Octets, field: FieldValue, depth: number): void {
  octets.octet(FIELD_TAGS[field.type].charCodeAt(0));
  switch (field.type) {
    case "bool":
      if (field.raw === undefined) octets.octet(field.value ? 1 : 0);
      else octets.bytes(requireSize(field.raw, 1));
      break;
    case "int8":
      octets.octet(toUnsigned(field.value, 8));
      break;
    case "uint8":
      octets.octet(field.value);
      break;
    case "int16":
    case "int16-standard":
      octets.short(toUnsigned(field.value, 16));
      break;
    case "uint16":
      octets.short(field.value);
      break;
    case "int32":
      octets.long(toUnsigned(field.value, 32));
      break;
    case "uint32":
      octets.long(field.value);
      break;
    case "int64":
    case "int64-standard":
      octets.longlong(BigInt.asUintN(64, toInt64(field.value, -(2n ** 63n), 2n ** 63n - 1n, field.type)));
      break;
    case "float":
      if (field.raw === undefined) octets.float(field.value);
      else octets.bytes(requireSize(field.raw, 4));
      break;
    case "double":
      if (field.raw === undefined) octets.double(field.value);
      else octets.bytes(requireSize(field.raw, 8));
      break;
    case "decimal":
      octets.octet(field.value.scale);
      octets.long(field.value.unscaled);
      break;
    case "longstr":
    case "bytes":
      octets.longstr(field.value);
      break;
    case "timestamp":
      octets.longlong(field.value);
      break;
    case "array":
      requireDepth(depth + 1);
      octets.sized(() => {
        for (const value of field.value) writeValue(octets, value, depth + 1);
      });
      break;
    case "table":
      writeTable(octets, field.value, depth + 1);
      break;
    case "void":
      break;
  }
}

function toUnsigned(value: number, bits: 8 | 16 | 32): number {
  const half = 2 ** (bits - 1);
  if (!Number.isInteger(value) || value < -half || value >= half) throw syntaxError(`${value} is no int${bits}`);
  return value < 0 ? value + 2 * half : value;
}

function requireSize(raw: Uint8Array, size: number): Uint8Array {
  if (raw.length !== size) throw syntaxError(`${raw.length} raw octets for a value of ${size}`);
  return raw;
}
