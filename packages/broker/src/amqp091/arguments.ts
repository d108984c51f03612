/**
 * The `x-` arguments: which are accepted, and the canonical form in which declarations are compared.
 *
 * Responsibilities: an argument that would change behaviour and is not built is refused by its name, never ignored; one
 * that only says where or how a broker keeps a queue is accepted, since here JetStream decides that.
 * Used by: handlers exchange, queue, basic. Separate because it is pure, and its law is tested alone: two tables that
 * say the same have one canonical form, whatever their order and integer widths.
 */
import type { FieldTable, FieldValue } from "@amqp/codec";
import { type Refusal, refuse } from "../refusals.ts";

/** Placement and storage of a queue: compared for equivalence as RabbitMQ does, otherwise without effect. */
const PLACEMENT: ReadonlySet<string> = new Set([
  "x-queue-mode",
  "x-queue-version",
  "x-queue-master-locator",
  "x-queue-leader-locator",
  "x-quorum-initial-group-size",
]);

export interface QueueArguments {
  readonly type: "classic" | "quorum";
  readonly canonical: string;
}

/** The arguments of queue.declare; those without `x-` are a client's own notes, which RabbitMQ does not compare either. */
export function queueArguments(queue: string, table: FieldTable): QueueArguments | Refusal {
  let type: QueueArguments["type"] = "classic";
  const compared: [string, FieldValue][] = [];
  for (const [name, value] of table) {
    if (name === "x-queue-type") {
      if (value.type !== "longstr") {
        return refuse("unacceptable-type", { argument: name, queue, wanted: value.type });
      }
      const wanted = text(value.value);
      if (wanted !== "classic" && wanted !== "quorum") return refuse("invalid-queue-type", { queue, wanted });
      type = wanted;
    } else if (PLACEMENT.has(name)) {
      compared.push([name, value]);
    } else if (name.startsWith("x-")) {
      return refuse("argument", { argument: name });
    }
  }
  return { type, canonical: canonical(compared) };
}

/** The arguments of exchange.declare: none that changes behaviour is built. */
export function exchangeArguments(table: FieldTable): string | Refusal {
  for (const [name] of table) {
    if (name === "alternate-exchange" || name.startsWith("x-")) return refuse("argument", { argument: name });
  }
  return "";
}

/** The arguments of basic.consume. `x-cancel-on-ha-failover` asks for nothing that can happen here. */
export function consumerArguments(table: FieldTable): Refusal | undefined {
  for (const [name] of table) {
    if (name.startsWith("x-") && name !== "x-cancel-on-ha-failover") return refuse("argument", { argument: name });
  }
  return undefined;
}

/** Sorted by name, the first of a repeated name, integers of every width alike; empty for an empty table. */
export function canonical(table: FieldTable): string {
  if (table.length === 0) return "";
  return JSON.stringify(canonicalTable(table));
}

type Canonical = readonly [type: string, value: unknown];

function canonicalTable(table: FieldTable): readonly (readonly [string, Canonical])[] {
  const first = new Map<string, Canonical>();
  for (const [name, value] of table) if (!first.has(name)) first.set(name, canonicalValue(value));
  return [...first].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

function canonicalValue(field: FieldValue): Canonical {
  switch (field.type) {
    case "int8":
    case "uint8":
    case "int16":
    case "uint16":
    case "int16-standard":
    case "int32":
    case "uint32":
    case "int64":
    case "int64-standard":
      return ["int", String(field.value)];
    case "float":
    case "double":
      return ["float", String(field.value)];
    case "timestamp":
      return ["timestamp", String(field.value)];
    case "longstr":
      return ["longstr", typeof field.value === "string" ? field.value : ["octets", hex(field.value)]];
    case "bytes":
      return ["bytes", hex(field.value)];
    case "decimal":
      return ["decimal", `${field.value.unscaled}e-${field.value.scale}`];
    case "array":
      return ["array", field.value.map(canonicalValue)];
    case "table":
      return ["table", canonicalTable(field.value)];
    case "bool":
    case "void":
      return [field.type, field.value];
  }
}

function hex(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString("hex");
}

function text(value: string | Uint8Array): string {
  return typeof value === "string" ? value : hex(value);
}
