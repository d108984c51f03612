// amqplib's generated definitions, reached by path: a second implementation to compare with.
import { createRequire } from "node:module";
import type { FieldTable, FieldValue } from "../src/index.ts";

interface Definitions {
  decode(id: number, payload: Buffer): Record<string, unknown>;
  encodeMethod(id: number, channel: number, fields: Record<string, unknown>): Buffer;
  encodeProperties(id: number, channel: number, size: number, fields: Record<string, unknown>): Buffer;
  info(id: number): { name: string; args: { type: string; name: string }[] };
}

export const definitions: Definitions = createRequire(import.meta.url)("../node_modules/amqplib/lib/defs.js");

/** A table as amqplib wants it: an object, with `!` for the types that it would not guess. */
export function toAmqplib(table: FieldTable): Record<string, unknown> {
  return Object.fromEntries(table.map(([name, value]) => [name, toAmqplibValue(value)]));
}

function toAmqplibValue(field: FieldValue): unknown {
  switch (field.type) {
    case "bool":
    case "void":
    case "longstr":
      return field.value;
    case "bytes":
      return Buffer.from(field.value);
    case "table":
      return toAmqplib(field.value);
    case "array":
      return field.value.map(toAmqplibValue);
    case "decimal":
      return { "!": "decimal", value: { places: field.value.scale, digits: field.value.unscaled } };
    default:
      return { "!": field.type, value: field.value };
  }
}
