/**
 * The one table of refusals: name → reply code, scope, and the sentence that names the remedy.
 *
 * Responsibilities: every error a client can be answered with. Nobody writes a reply code by hand.
 * Used by: core (which names a refusal and its details), front ends (which map it to their wire), and from the
 * same rows the README's table, the unit test (text fits 255 octets, names a remedy) and an e2e case each.
 * Separate because a refusal is data: returned, never thrown. What is thrown is a bug.
 */
import { truncate } from "@amqp/translator";

/** What the refusal closes: the channel it came on, or the whole connection. */
export type Scope = "channel" | "connection";

interface Row {
  /** The AMQP 0-9-1 reply code; other front ends map the row's name. */
  readonly code: number;
  readonly scope: Scope;
  /** The sentence without the code's name; `detail` values are already cut to fit. */
  readonly text: (detail: Detail) => string;
  /** HIP-1326 §4: listed in the README's table of what is not implemented. */
  readonly notImplemented?: string;
}

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

const VHOST = "in vhost '/'";

export const REFUSALS = {
  // Nothing of that name (AMQP 404).
  "no-queue": { code: 404, scope: "channel", text: (d) => `no queue '${d.queue}' ${VHOST}` },
  "no-exchange": { code: 404, scope: "channel", text: (d) => `no exchange '${d.exchange}' ${VHOST}` },
  // Somebody else's (AMQP 405, 403).
  "queue-locked": {
    code: 405,
    scope: "channel",
    text: (d) =>
      `cannot obtain exclusive access to locked queue '${d.queue}' ${VHOST}. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.`,
  },
  "exclusive-use": { code: 403, scope: "channel", text: (d) => `queue '${d.queue}' ${VHOST} in exclusive use` },
  "default-exchange": { code: 403, scope: "channel", text: () => "operation not permitted on the default exchange" },
  "internal-exchange": {
    code: 403,
    scope: "channel",
    text: (d) => `cannot publish to internal exchange '${d.exchange}' ${VHOST}`,
  },
  // What is there differs from what was asked for, or is in use (AMQP 406).
  "inequivalent-queue": {
    code: 406,
    scope: "channel",
    text: (d) =>
      `inequivalent arg '${d.argument}' for queue '${d.queue}' ${VHOST}: received '${d.wanted}' but current is '${d.present}'`,
  },
  "inequivalent-exchange": {
    code: 406,
    scope: "channel",
    text: (d) =>
      `inequivalent arg '${d.argument}' for exchange '${d.exchange}' ${VHOST}: received '${d.wanted}' but current is '${d.present}'`,
  },
  "quorum-property": {
    code: 406,
    scope: "channel",
    text: (d) => `invalid property '${d.argument}' for queue '${d.queue}' ${VHOST}`,
  },
  "queue-in-use": { code: 406, scope: "channel", text: (d) => `queue '${d.queue}' ${VHOST} in use` },
  "queue-not-empty": { code: 406, scope: "channel", text: (d) => `queue '${d.queue}' ${VHOST} not empty` },
  "exchange-in-use": { code: 406, scope: "channel", text: (d) => `exchange '${d.exchange}' ${VHOST} in use` },
  // What has no spelling on the bus: the translator's own sentence.
  "no-subject": { code: 406, scope: "channel", text: (d) => d.text ?? "" },
  "no-filter": { code: 540, scope: "channel", text: (d) => d.text ?? "" },
  // The bus.
  "bus-silent": {
    code: 320,
    scope: "connection",
    text: () => "the bus did not answer; nothing is known of the last command: connect again and repeat it",
  },
} as const satisfies Record<string, Row>;

export type RefusalName = keyof typeof REFUSALS;

/** A refusal on its way to the client. */
export interface Refusal {
  readonly kind: "refusal";
  readonly name: RefusalName;
  readonly code: number;
  readonly scope: Scope;
  readonly text: string;
}

/** Makes the refusal of that name; the text is cut to what a reply text holds beside its code's name. */
export function refuse(name: RefusalName, detail: Detail = {}): Refusal {
  const row: Row = REFUSALS[name];
  return { kind: "refusal", name, code: row.code, scope: row.scope, text: truncate(row.text(detail), 220) };
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && (value as { kind?: unknown }).kind === "refusal";
}
