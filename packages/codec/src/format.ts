// One line of text for each entry of a trace.
// For people who read a capture; the broker's tests print failures with it. Separate from trace.ts so that a tool can
// format its own way. What may hold a credential (SASL challenge and response, a new secret) is never printed.
import { METHODS, type MethodSpec } from "./methods.ts";
import { PROPERTIES, type Properties } from "./properties.ts";
import { asBuffer, decodeUtf8 } from "./reader.ts";
import type { FieldTable, FieldValue } from "./table.ts";
import type { TraceEntry } from "./trace.ts";
import type { Method } from "./types.ts";

const SECRET: ReadonlySet<string> = new Set(["challenge", "response", "newSecret"]);

// Fields that nobody reads any more: shown only where a peer filled them.
const RESERVED: ReadonlySet<string> = new Set([
  "ticket",
  "outOfBand",
  "channelId",
  "capabilities",
  "insist",
  "knownHosts",
  "clusterId",
]);

/**
 * The entry in one line, in the protocol's own names; bits are named where they are set.
 *
 * @example `ch=1 basic.publish exchange="" routing-key="hello" | 2 B content-type=text/plain`
 */
export function formatCommand(entry: TraceEntry): string {
  const origin = `${entry.direction === undefined ? "" : `${entry.direction} `}ch=${entry.channel}`;
  switch (entry.kind) {
    case "protocol-header":
      return `${origin} protocol-header ${[...entry.octets.subarray(4)].join("-")}`;
    case "heartbeat":
      return `${origin} heartbeat`;
    case "method":
      return `${origin} ${formatMethod(entry.method)}`;
    case "message":
      return `${origin} ${formatMethod(entry.method)} | ${entry.bodySize} B${formatProperties(entry.properties)}`;
    case "malformed":
      return `${origin} malformed: ${entry.error.message}`;
    case "truncated":
      return `${origin} truncated: ${entry.octets > 0 ? `${entry.octets} octets of a frame` : "content incomplete"}`;
  }
}

function formatMethod(method: Method): string {
  const spec: MethodSpec = METHODS[method.name];
  const values: Readonly<Record<string, unknown>> = method.fields;
  let line: string = method.name;
  for (const [name, type] of spec.fields) {
    const value = values[name];
    if (type === "bit") line += value === true ? ` ${toKebab(name)}` : "";
    else if (!RESERVED.has(name) || isFilled(value)) line += ` ${toKebab(name)}=${formatField(name, value)}`;
  }
  return line;
}

function isFilled(value: unknown): boolean {
  return value instanceof Uint8Array ? value.length > 0 : value !== 0 && value !== "";
}

function formatField(name: string, value: unknown): string {
  if (value instanceof Uint8Array) return SECRET.has(name) ? `<${value.length} octets>` : formatOctets(value);
  if (Array.isArray(value)) return formatTable(value as FieldTable);
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function formatProperties(properties: Properties): string {
  let line = "";
  for (const [name, type] of PROPERTIES) {
    const value = properties[name];
    if (value === undefined) continue;
    line += ` ${toKebab(name)}=`;
    if (type === "table") line += formatTable(value as FieldTable);
    else line += typeof value === "string" ? formatText(value) : String(value);
  }
  return line;
}

/** A table in one line: `{x-match=all, count=3}`. */
export function formatTable(table: FieldTable): string {
  return `{${table.map(([name, value]) => `${formatText(name)}=${formatValue(value)}`).join(", ")}}`;
}

/** A field value in one line, without its type; octets that are not text in hexadecimal. */
export function formatValue(field: FieldValue): string {
  switch (field.type) {
    case "table":
      return formatTable(field.value);
    case "array":
      return `[${field.value.map(formatValue).join(", ")}]`;
    case "longstr":
      return typeof field.value === "string" ? formatText(field.value) : formatOctets(field.value);
    case "bytes":
      return formatOctets(field.value);
    case "decimal":
      return `${field.value.unscaled}e-${field.value.scale}`;
    default:
      return String(field.value);
  }
}

/** Text as it is where it reads as one word, else quoted. */
function formatText(text: string): string {
  return /^[\w.:/@+*#$-]+$/.test(text) ? text : JSON.stringify(text);
}

function formatOctets(octets: Uint8Array): string {
  const buffer = asBuffer(octets);
  const text = decodeUtf8(buffer, 0, buffer.length);
  return text === undefined ? `0x${buffer.toString("hex")}` : JSON.stringify(text);
}

function toKebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
