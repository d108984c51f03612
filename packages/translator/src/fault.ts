/**
 * The refusal VALUE of this package. A name, kind or key that cannot be translated is answered, never thrown:
 * the broker adds the reply code's name in front ("PRECONDITION_FAILED - ") and closes the channel with it.
 * Every text says which rule was broken and what to do instead (HIP §4), and leaves room for that prefix in the
 * 255 octets of an AMQP short string, whatever the client sent. Separate because every other file returns it.
 */

/** A refusal: a value that stands where the translation would have stood. */
export interface Fault {
  readonly kind: "fault";
  /** 406 PRECONDITION_FAILED or 540 NOT_IMPLEMENTED, a channel exception either way (HIP §4). */
  readonly code: 406 | 540;
  /** The rule and the remedy; at most {@link FAULT_OCTETS} octets of UTF-8, one line, without the reply code's name. */
  readonly text: string;
}

/** The most octets of UTF-8 that a {@link Fault.text} takes. */
export const FAULT_OCTETS = 200;

/** Whether a result of this package is a refusal. */
export function isFault(value: unknown): value is Fault {
  return typeof value === "object" && value !== null && (value as Partial<Fault>).kind === "fault";
}

/**
 * A refusal that quotes what the client sent: `<before>'<named>'<after>`. Only the quoted part is ever cut, so the
 * rule and the remedy in `after` always arrive whole.
 */
export function refuse(code: Fault["code"], before: string, named: string, after: string): Fault {
  const room = FAULT_OCTETS - octetsOf(before) - octetsOf(after) - 2;
  return { kind: "fault", code, text: `${before}'${truncate(printable(named), room)}'${after}` };
}

/**
 * The text itself where it fits `maxOctets` octets of UTF-8, else its longest head that fits with "…" behind it, cut
 * between code points. Too small a limit for the "…" (3 octets) gives the empty string.
 */
export function truncate(text: string, maxOctets: number): string {
  // No UTF-16 unit takes more than three octets: the common short text is not measured.
  if (text.length * 3 <= maxOctets || octetsOf(text) <= maxOctets) return text;
  if (maxOctets < 3) return "";
  let used = 3;
  let end = 0;
  for (const point of text) {
    used += octetsOfPoint(point);
    if (used > maxOctets) break;
    end += point.length;
  }
  return `${text.slice(0, end)}…`;
}

/** How many octets the text takes in UTF-8; an unpaired surrogate counts as the three of U+FFFD. */
export function octetsOf(text: string): number {
  let octets = 0;
  for (const point of text) octets += octetsOfPoint(point);
  return octets;
}

function octetsOfPoint(point: string): number {
  const code = point.codePointAt(0) ?? 0;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** Spells out what would break a log line or a UTF-8 encoder: control characters, line separators, lone surrogates. */
function printable(named: string): string {
  return named.replace(
    /[\p{Cc}\p{Cs}\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
