/**
 * The status of an answer without payload: the first line of its header block, and the headers behind it.
 *
 * Used by: pub-ack, ask. Separate because it is the one place that reads header blocks as text: rare, and by hand, so
 * that no message builds a map of headers.
 */
import type { Buffer } from "node:buffer";

export interface Status {
  /** 0 where the block has none. */
  readonly code: number;
  readonly description: string;
}

const NONE: Status = { code: 0, description: "" };
const LINE = /^NATS\/1\.0[ \t]*(\d{3})?[ \t]*([^\r]*)/;

export function readStatus(head: Buffer | undefined): Status {
  const [, code, description] = LINE.exec(head?.toString("latin1") ?? "") ?? [];
  return code === undefined ? NONE : { code: Number(code), description: (description ?? "").trim() };
}

/** The first value under that name, or empty. */
export function readHeader(head: Buffer | undefined, name: string): string {
  for (const line of (head?.toString("latin1") ?? "").split("\r\n")) {
    if (line.startsWith(`${name}:`)) return line.slice(name.length + 1).trim();
  }
  return "";
}
