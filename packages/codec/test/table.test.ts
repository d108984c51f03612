// Field tables: lossless with every tag, limited in depth, and never fooled by a length.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CodecError,
  decodeTable,
  encodeTable,
  FIELD_TAGS,
  type FieldTable,
  type FieldValue,
  fromPlain,
  getField,
  type PlainTable,
  TABLE_DEPTH_MAX,
  toPlain,
} from "../src/index.ts";
import { fieldTable } from "./arbitraries.ts";

const one = (value: FieldValue): FieldTable => [["a", value]];
const octetsOf = (tag: string, value: Buffer) => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(3 + value.length);
  return Buffer.concat([size, Buffer.from(`\x01a${tag}`, "latin1"), value]);
};

/** A table that nests `depth` deep, made without recursion. */
function nested(depth: number, tag: "F" | "A"): Buffer {
  let inner = Buffer.alloc(4);
  for (let i = 1; i < depth; i++) {
    const head = Buffer.alloc(4);
    const name = tag === "F" || i === depth - 1 ? Buffer.from(`\x01a${tag}`, "latin1") : Buffer.from(tag);
    head.writeUInt32BE(name.length + inner.length);
    inner = Buffer.concat([head, name, inner]);
  }
  return inner;
}

describe("field tables", () => {
  test("law: decode(encode(table)) = table, and encode(decode(octets)) = octets", () => {
    fc.assert(
      fc.property(fieldTable, (table) => {
        const octets = encodeTable(table);
        const decoded = decodeTable(octets);
        expect(decoded).toEqual(table);
        expect(encodeTable(decoded)).toEqual(octets);
      }),
      { numRuns: 500 },
    );
  });

  test("law: whatever octets decode, encode to the same octets", () => {
    const tags = Object.values(FIELD_TAGS).map((tag) => tag.charCodeAt(0));
    // Octets that are likely to be a table: a right length, a name, a tag, then anything.
    const likely = fc.tuple(fc.constantFrom(...tags), fc.uint8Array({ minLength: 0, maxLength: 16 }));
    fc.assert(
      fc.property(likely, ([tag, bytes]) => {
        const octets = octetsOf(String.fromCharCode(tag), Buffer.from(bytes));
        let table: FieldTable;
        try {
          table = decodeTable(octets);
        } catch (error) {
          expect(error).toBeInstanceOf(CodecError);
          return;
        }
        expect(encodeTable(table)).toEqual(octets);
      }),
      { numRuns: 3000 },
    );
  });

  test.each<[string, Buffer, FieldValue]>([
    ["t", Buffer.of(1), { type: "bool", value: true }],
    ["t", Buffer.of(7), { type: "bool", value: true, raw: Uint8Array.of(7) }],
    ["b", Buffer.of(0xff), { type: "int8", value: -1 }],
    ["B", Buffer.of(0xff), { type: "uint8", value: 255 }],
    ["s", Buffer.of(0x80, 0), { type: "int16", value: -32768 }],
    ["U", Buffer.of(0x80, 0), { type: "int16-standard", value: -32768 }],
    ["u", Buffer.of(0x80, 0), { type: "uint16", value: 32768 }],
    ["I", Buffer.of(0x80, 0, 0, 0), { type: "int32", value: -(2 ** 31) }],
    ["i", Buffer.of(0x80, 0, 0, 0), { type: "uint32", value: 2 ** 31 }],
    ["l", Buffer.of(0x80, 0, 0, 0, 0, 0, 0, 1), { type: "int64", value: -(2n ** 63n) + 1n }],
    ["L", Buffer.of(0x7f, 255, 255, 255, 255, 255, 255, 255), { type: "int64-standard", value: 2n ** 63n - 1n }],
    ["f", Buffer.of(0x3f, 0x80, 0, 0), { type: "float", value: 1 }],
    ["f", Buffer.of(0x7f, 0x80, 0, 1), { type: "float", value: Number.NaN, raw: Buffer.of(0x7f, 0x80, 0, 1) }],
    ["d", Buffer.of(0x80, 0, 0, 0, 0, 0, 0, 0), { type: "double", value: -0 }],
    ["D", Buffer.of(2, 0, 0, 1, 0x3a), { type: "decimal", value: { scale: 2, unscaled: 314 } }],
    ["S", Buffer.from("\0\0\0\x02hi"), { type: "longstr", value: "hi" }],
    ["S", Buffer.of(0, 0, 0, 1, 0xff), { type: "longstr", value: Buffer.of(0xff) }],
    ["S", Buffer.from("\0\0\0\x03\uFEFF"), { type: "longstr", value: "\uFEFF" }],
    ["x", Buffer.from("\0\0\0\x02hi"), { type: "bytes", value: Buffer.from("hi") }],
    ["T", Buffer.alloc(8, 0xff), { type: "timestamp", value: 2n ** 64n - 1n }],
    [
      "A",
      Buffer.from("\0\0\0\x03t\x01V"),
      {
        type: "array",
        value: [
          { type: "bool", value: true },
          { type: "void", value: null },
        ],
      },
    ],
    ["F", Buffer.from("\0\0\0\x03\x01bV"), { type: "table", value: [["b", { type: "void", value: null }]] }],
    ["V", Buffer.alloc(0), { type: "void", value: null }],
  ])("tag %s of %o is %o", (tag, octets, value) => {
    expect(decodeTable(octetsOf(tag, octets))).toEqual(one(value));
    expect(encodeTable(one(value))).toEqual(octetsOf(tag, octets));
  });

  test("repeated names keep their octets, and the first counts", () => {
    const table: FieldTable = [
      ["a", { type: "int32", value: 1 }],
      ["a", { type: "int32", value: 2 }],
    ];
    const decoded = decodeTable(encodeTable(table));
    expect(decoded).toEqual(table);
    expect(getField(decoded, "a")).toEqual({ type: "int32", value: 1 });
    expect(getField(decoded, "b")).toBeUndefined();
    expect(toPlain(decoded)).toEqual({ a: 1 });
  });

  test.each(["F", "A"] as const)("%s may nest 128 deep, and 10,000 deep is an error, not a stack overflow", (tag) => {
    expect(encodeTable(decodeTable(nested(TABLE_DEPTH_MAX, tag)))).toEqual(nested(TABLE_DEPTH_MAX, tag));
    for (const depth of [TABLE_DEPTH_MAX + 1, 10_000]) {
      expect(() => decodeTable(nested(depth, tag))).toThrow("a field table nests at most 128 deep");
    }
  });

  test("a table that contains itself cannot be encoded", () => {
    const loop: [string, FieldValue][] = [];
    loop.push(["self", { type: "table", value: loop }]);
    expect(() => encodeTable(loop)).toThrow(CodecError);
  });

  test.each([
    ["unknown tag", "000000040161 5a 00"],
    ["length beyond the end", "000000ff 0161 56"],
    ["length before the end", "00000003 0161 56 00"],
    ["name beyond the end", "00000002 0961"],
    ["value beyond the table", "00000004 0161 49 00"],
    ["longstr beyond the table", "00000007 0161 53 ffffffff"],
    ["inner table beyond the table", "00000007 0161 46 00000001"],
    ["no tag", "00000002 0161"],
    ["name that is not UTF-8", "00000003 01ff 56"],
    ["half a length", "0000"],
  ])("%s is a 502", (_, hex) => {
    expect(() => decodeTable(Buffer.from(hex.replaceAll(" ", ""), "hex"))).toThrow(/^SYNTAX_ERROR - /);
  });

  test.each<FieldValue>([
    { type: "int8", value: 128 },
    { type: "uint8", value: -1 },
    { type: "int16", value: 2 ** 15 },
    { type: "int32", value: 0.5 },
    { type: "uint32", value: 2 ** 32 },
    { type: "int64", value: 2n ** 63n },
    { type: "timestamp", value: -1n },
    { type: "decimal", value: { scale: 256, unscaled: 0 } },
    { type: "bool", value: true, raw: Uint8Array.of(1, 1) },
    { type: "double", value: 0, raw: Uint8Array.of(1) },
  ])("%o cannot be encoded", (value) => {
    expect(() => encodeTable(one(value))).toThrow(CodecError);
  });
});

describe("plain objects", () => {
  const plain: fc.Arbitrary<PlainTable> = fc.letrec<{ table: PlainTable }>((tie) => ({
    table: fc.dictionary(
      fc.string({ maxLength: 8 }),
      fc.oneof(
        { depthSize: "small" },
        fc.integer(),
        fc.double({ noInteger: true }),
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.string(),
        fc.boolean(),
        fc.constant(null),
        fc.uint8Array({ maxLength: 8 }),
        fc
          .date({ min: new Date(0), noInvalidDate: true })
          .map((date) => new Date(Math.floor(date.getTime() / 1000) * 1000)),
        fc.array(fc.oneof(fc.integer(), fc.string()), { maxLength: 4 }),
        tie("table"),
      ),
      { maxKeys: 5 },
    ),
  })).table;

  test("law: toPlain(decode(encode(fromPlain(object)))) = object", () => {
    fc.assert(
      fc.property(plain, (object) => {
        const back = toPlain(decodeTable(encodeTable(fromPlain(object))));
        expect(normal(back)).toEqual(normal(object));
      }),
      { numRuns: 500 },
    );
  });

  test("numbers take the natural tag, 64-bit integers stay exact", () => {
    const table = fromPlain({ a: 1, b: 2 ** 40, c: 0.5, d: 2n ** 60n + 1n, e: -0, f: 2 ** 60, g: undefined });
    expect(table.map(([name, value]) => [name, value.type, value.value])).toEqual([
      ["a", "int32", 1],
      ["b", "int64", 2n ** 40n],
      ["c", "double", 0.5],
      ["d", "int64", 2n ** 60n + 1n],
      ["e", "double", -0],
      ["f", "double", 2 ** 60],
    ]);
  });

  test("a name cannot reach the prototype", () => {
    const object = toPlain([["__proto__", { type: "table", value: [["polluted", { type: "bool", value: true }]] }]]);
    expect(Object.keys(object)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test("what no tag fits is a CodecError", () => {
    expect(() => fromPlain({ a: 2n ** 63n })).toThrow(CodecError);
    expect(() => fromPlain({ a: new Date(-1000) })).toThrow(CodecError);
    expect(() => fromPlain({ a: new Date(Number.NaN) })).toThrow(CodecError);
    expect(() => fromPlain({ a: (() => 1) as unknown as string })).toThrow(CodecError);
    const loop: { self?: PlainTable } & PlainTable = {};
    loop.self = loop;
    expect(() => fromPlain(loop)).toThrow(CodecError);
  });

  test("decimals and far timestamps", () => {
    expect(toPlain(one({ type: "decimal", value: { scale: 2, unscaled: 314 } }))).toEqual({ a: 3.14 });
    expect(toPlain(one({ type: "timestamp", value: 2n ** 63n }))).toEqual({ a: 2n ** 63n });
  });
});

// Buffers and Uint8Arrays as equal things, objects with and without prototype too.
function normal(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (value instanceof Date || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(normal);
  return Object.entries(value).map(([name, inner]) => [name, normal(inner)]);
}
