// Field tables as ordinary objects and back, with the natural tags.
// For callers who want `{ "x-queue-type": "quorum" }` rather than typed entries: tests, tools, management. Separate from
// table.ts because it is a convenience that forgets types, and the lossless form must not lean on it.
import { syntaxError } from "./error.ts";
import { type FieldTable, type FieldValue, TABLE_DEPTH_MAX } from "./table.ts";

/** A value without its type tag; 64-bit integers are bigint. */
export type PlainValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | readonly PlainValue[]
  | PlainTable;

/** A table as an object. Names that are undefined are left out when a table is made of it. */
export interface PlainTable {
  readonly [name: string]: PlainValue | undefined;
}

const LAST_SECOND = 8_640_000_000_000n; // of what a Date can hold

/**
 * The table as an object without prototype. Of a repeated name the first value counts, as for `getField`. 64-bit
 * integers are bigint, timestamps are Date (bigint where no Date reaches), decimals the nearest number.
 */
export function toPlain(table: FieldTable): PlainTable {
  const plain: Record<string, PlainValue> = Object.create(null);
  for (const [name, value] of table) if (!(name in plain)) plain[name] = toPlainValue(value);
  return plain;
}

/**
 * The object as a table, each value with its natural type: string → longstr, boolean → bool, number → int32 where it
 * is one, int64 where it is a larger safe integer, else double; bigint → int64, null → void, Date → timestamp (whole
 * seconds), Uint8Array → bytes, array → array, object → table.
 *
 * @throws CodecError 502 for a bigint of more than 64 bits, a Date before 1970, any other kind of value, and a nesting
 * beyond {@link TABLE_DEPTH_MAX}.
 */
export function fromPlain(plain: PlainTable): FieldTable {
  return fromPlainTable(plain, 1);
}

function toPlainValue(field: FieldValue): PlainValue {
  switch (field.type) {
    case "table":
      return toPlain(field.value);
    case "array":
      return field.value.map(toPlainValue);
    case "decimal":
      return field.value.unscaled / 10 ** field.value.scale;
    case "timestamp":
      return field.value > LAST_SECOND ? field.value : new Date(Number(field.value) * 1000);
    default:
      return field.value;
  }
}

function fromPlainTable(plain: PlainTable, depth: number): FieldTable {
  if (depth > TABLE_DEPTH_MAX) throw syntaxError(`a field table nests at most ${TABLE_DEPTH_MAX} deep`);
  const table: [string, FieldValue][] = [];
  for (const [name, value] of Object.entries(plain)) {
    if (value !== undefined) table.push([name, fromPlainValue(value, depth)]);
  }
  return table;
}

function fromPlainValue(value: PlainValue, depth: number): FieldValue {
  switch (typeof value) {
    case "string":
      return { type: "longstr", value };
    case "boolean":
      return { type: "bool", value };
    case "number":
      return fromNumber(value);
    case "bigint":
      if (BigInt.asIntN(64, value) !== value) throw syntaxError("a bigint of more than 64 bits");
      return { type: "int64", value };
    case "object":
      return fromObject(value, depth);
    default:
      throw syntaxError(`a field table holds no ${typeof value}`);
  }
}

function fromNumber(value: number): FieldValue {
  if ((value | 0) === value && !Object.is(value, -0)) return { type: "int32", value };
  if (Number.isSafeInteger(value) && value !== 0) return { type: "int64", value: BigInt(value) };
  return { type: "double", value };
}

function fromObject(value: Exclude<PlainValue, boolean | number | bigint | string>, depth: number): FieldValue {
  if (value === null) return { type: "void", value };
  if (value instanceof Uint8Array) return { type: "bytes", value };
  if (value instanceof Date) {
    const seconds = Math.floor(value.getTime() / 1000);
    if (!(seconds >= 0)) throw syntaxError("a timestamp is no earlier than 1970");
    return { type: "timestamp", value: BigInt(seconds) };
  }
  if (isArray(value)) {
    if (depth >= TABLE_DEPTH_MAX) throw syntaxError(`a field table nests at most ${TABLE_DEPTH_MAX} deep`);
    return { type: "array", value: value.map((item) => fromPlainValue(item, depth + 1)) };
  }
  return { type: "table", value: fromPlainTable(value, depth + 1) };
}

// Array.isArray does not narrow a readonly array out of a union.
function isArray(value: readonly PlainValue[] | PlainTable): value is readonly PlainValue[] {
  return Array.isArray(value);
}
