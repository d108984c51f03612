/**
 * Refusals: a row of the table with its details filled in.
 *
 * Used by: core (which names a refusal and its details), front ends (which map it to their wire). Separate because a
 * refusal is data: returned, never thrown. What is thrown is a bug.
 */
import { truncate } from "@amqp/translator";
import { REFUSALS, type RefusalRow, type Scope } from "./refusal-table.ts";

export { REFUSALS, type RefusalRow, type Scope } from "./refusal-table.ts";

/** What a sentence may speak of. */
export interface Detail {
  readonly queue?: string;
  readonly exchange?: string;
  readonly key?: string;
  readonly tag?: string | number;
  readonly argument?: string;
  readonly wanted?: string;
  readonly present?: string;
  readonly text?: string;
}

export type RefusalName = keyof typeof REFUSALS;

/** A refusal on its way to the client. */
export interface Refusal {
  readonly kind: "refusal";
  readonly name: RefusalName;
  readonly code: number;
  readonly scope: Scope;
  readonly text: string;
}

/** Octets of a reply text beside the longest code name and its dash: 255 − `PRECONDITION_FAILED - `. */
const TEXT_OCTETS = 233;
/** Octets of a detail where its row names no other length: the longest name. */
const DETAIL_OCTETS = 128;
const DETAIL = /\{(\w+)(?::(\d+))?\}/gu;

/** Makes the refusal of that name; details and text are cut to what a reply text holds beside its code's name. */
export function refuse(name: RefusalName, detail: Detail = {}): Refusal {
  const row: RefusalRow = REFUSALS[name];
  const values = detail as Readonly<Record<string, string | number | undefined>>;
  const text = row.text.replace(DETAIL, (_, key: string, octets: string | undefined) =>
    truncate(String(values[key] ?? ""), octets === undefined ? detailOctets(key) : Number(octets)),
  );
  return { kind: "refusal", name, code: row.code, scope: row.scope, text: truncate(text, TEXT_OCTETS) };
}

/** A sentence that comes ready from elsewhere is cut with the whole. */
function detailOctets(key: string): number {
  return key === "text" ? TEXT_OCTETS : DETAIL_OCTETS;
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && (value as { kind?: unknown }).kind === "refusal";
}
