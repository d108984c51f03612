/**
 * The README's table of what is not implemented and what the answer says (HIP §4), printed from the refusals themselves.
 *
 * Used by: the script that prints README's table, a unit test, e2e. Separate because two of its rows are the translator's.
 */
import { checkKind, isFault, toFilters } from "@amqp/translator";
import { type Detail, REFUSALS, type RefusalName, type RefusalRow, refuse } from "./refusals.ts";

/** A line of the README's table. */
export interface NotImplemented {
  readonly what: string;
  readonly class: string;
  /** The sentence that a client gets. */
  readonly answer: string;
}

/** What is not implemented and what the answer says (HIP §4): the README's table, from these rows and the translator's. */
export function notImplemented(): readonly NotImplemented[] {
  const rows: NotImplemented[] = [
    { what: "`headers` exchanges", class: "exchange", answer: faultText(checkKind("headers")) },
    { what: "`#` before the end of a binding key", class: "queue", answer: faultText(toFilters("topic", "t", "#.a")) },
  ];
  const detail: Detail = { wanted: "1", argument: "…" };
  for (const [name, row] of Object.entries(REFUSALS) as [RefusalName, RefusalRow][]) {
    if (row.notImplemented !== undefined) rows.push({ ...row.notImplemented, answer: refuse(name, detail).text });
  }
  return rows;
}

function faultText(result: unknown): string {
  if (!isFault(result)) throw new Error("the translator implements what the README calls not implemented");
  return result.text;
}
