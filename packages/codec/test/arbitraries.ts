// fast-check arbitraries of this package's values: fields of any method, field tables with every tag, properties, cuts.
import fc from "fast-check";
import {
  type DecodedTypes,
  type FieldTable,
  type FieldValue,
  METHODS,
  type MethodName,
  type MethodSpec,
  type Properties,
  type WireType,
} from "../src/index.ts";

const text = (maxOctets: number) =>
  fc.string({ unit: "grapheme", maxLength: maxOctets }).filter((s) => Buffer.byteLength(s) <= maxOctets);

export const shortstr: fc.Arbitrary<string> = fc.oneof(text(12), text(255));

export const octets = (maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes));

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const int = (type: "int8" | "int16" | "int16-standard" | "int32", bits: number) =>
  fc.record({ type: fc.constant(type), value: fc.integer({ min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 }) });
const uint = (type: "uint8" | "uint16" | "uint32", bits: number) =>
  fc.record({ type: fc.constant(type), value: fc.integer({ min: 0, max: 2 ** bits - 1 }) });

const isUtf8 = (bytes: Uint8Array) => Buffer.from(Buffer.from(bytes).toString("utf8")).equals(bytes);

const scalar: fc.Arbitrary<FieldValue> = fc.oneof(
  fc.record({ type: fc.constant("bool" as const), value: fc.boolean() }),
  int("int8", 8),
  int("int16", 16),
  int("int16-standard", 16),
  int("int32", 32),
  uint("uint8", 8),
  uint("uint16", 16),
  uint("uint32", 32),
  fc.record({ type: fc.constantFrom("int64" as const, "int64-standard" as const), value: int64 }),
  fc.record({ type: fc.constant("float" as const), value: fc.float({ noNaN: true }) }),
  fc.record({ type: fc.constant("double" as const), value: fc.double({ noNaN: true }) }),
  fc.record({
    type: fc.constant("decimal" as const),
    value: fc.record({ scale: fc.nat(255), unscaled: fc.nat(2 ** 32 - 1) }),
  }),
  fc.record({ type: fc.constant("longstr" as const), value: fc.oneof(text(40), text(300)) }),
  fc.record({ type: fc.constant("longstr" as const), value: octets(8).filter((bytes) => !isUtf8(bytes)) }),
  fc.record({ type: fc.constant("bytes" as const), value: octets(20) }),
  fc.record({ type: fc.constant("timestamp" as const), value: uint64 }),
  fc.constant({ type: "void", value: null } as const),
);

function tables(name: fc.Arbitrary<string>, leaf: fc.Arbitrary<FieldValue>): fc.Arbitrary<FieldTable> {
  return fc.letrec<{ value: FieldValue; table: FieldTable }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      { weight: 4, arbitrary: leaf },
      fc.record({ type: fc.constant("array" as const), value: fc.array(tie("value"), { maxLength: 5 }) }),
      fc.record({ type: fc.constant("table" as const), value: tie("table") }),
    ),
    table: fc.array(fc.tuple(name, tie("value")), { maxLength: 6 }),
  })).table;
}

/** Any table that the wire can carry, repeated names included. */
export const fieldTable: fc.Arbitrary<FieldTable> = tables(text(20), scalar);

/** A table that amqplib can write: no tags but RabbitMQ's, text for longstrs, and names that an object keeps in order. */
export const amqplibTable: fc.Arbitrary<FieldTable> = tables(
  fc.tuple(fc.constantFrom("a", "x-", "é"), text(12)).map((parts) => parts.join("")),
  scalar.filter(
    ({ type, value }) =>
      type !== "int16-standard" && type !== "int64-standard" && (type !== "longstr" || typeof value === "string"),
  ),
).map(withoutRepeats);

function withoutRepeats(table: FieldTable): FieldTable {
  const names = new Map(table.map(([name, value]) => [name, value]));
  return [...names].map(([name, value]) => [name, withoutRepeatsInside(value)]);
}

function withoutRepeatsInside(field: FieldValue): FieldValue {
  if (field.type === "table") return { type: "table", value: withoutRepeats(field.value) };
  return field.type === "array" ? { type: "array", value: field.value.map(withoutRepeatsInside) } : field;
}

export const wireValues: { readonly [T in WireType]: fc.Arbitrary<DecodedTypes[T]> } = {
  bit: fc.boolean(),
  octet: fc.nat(0xff),
  short: fc.nat(0xffff),
  long: fc.nat(0xffffffff),
  longlong: uint64,
  timestamp: uint64,
  shortstr,
  longstr: octets(300),
  table: fieldTable,
};

export const methodNames: readonly MethodName[] = Object.keys(METHODS) as MethodName[];

/** Decoded fields of a method. */
export function fieldsOf(
  name: MethodName,
  values: { readonly [T in WireType]: fc.Arbitrary<DecodedTypes[T]> } = wireValues,
): fc.Arbitrary<Record<string, DecodedTypes[WireType]>> {
  const spec: MethodSpec = METHODS[name];
  const record: Record<string, fc.Arbitrary<DecodedTypes[WireType]>> = {};
  for (const [field, type] of spec.fields) record[field] = values[type];
  return fc.record(record);
}

export const properties: fc.Arbitrary<Properties> = fc.record(
  {
    contentType: shortstr,
    contentEncoding: shortstr,
    headers: fieldTable,
    deliveryMode: wireValues.octet,
    priority: wireValues.octet,
    correlationId: shortstr,
    replyTo: shortstr,
    expiration: shortstr,
    messageId: shortstr,
    timestamp: uint64,
    type: shortstr,
    userId: shortstr,
    appId: shortstr,
    clusterId: shortstr,
  },
  { requiredKeys: [] },
);

/** The octets cut at these places (any numbers; out of range ones are left out). */
export function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const inside = [...new Set(places)].filter((at) => at > 0 && at < bytes.length).sort((a, b) => a - b);
  return [0, ...inside].map((at, i) => bytes.subarray(at, inside[i] ?? bytes.length));
}
