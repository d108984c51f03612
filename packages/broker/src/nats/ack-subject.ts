/**
 * The ack subject of a delivery: what JetStream tells of a message in its reply subject.
 *
 * Responsibilities: reads both forms by hand, in one pass without splitting:
 *   $JS.ACK.<stream>.<consumer>.<delivered>.<sseq>.<cseq>.<time>.<pending>                        (9 tokens)
 *   $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<sseq>.<cseq>.<time>.<pending>[.…]  (11 and more)
 * and writes the first for a delivery whose own is not known any more.
 * Used by: incoming, settlements. Separate because it is pure and on the hottest path.
 */

const DOT = 46;

/** What an ack subject tells. Reused by the caller: one object, filled by each {@link readAckSubject}. */
export interface AckFacts {
  attempts: number;
  sequence: number;
  deliverySequence: number;
  /** Milliseconds since the epoch. */
  time: number;
}

/** Fills `facts`; false where this is no ack subject. */
export function readAckSubject(subject: string, facts: AckFacts): boolean {
  if (!subject.startsWith("$JS.ACK.")) return false;
  const length = subject.length;
  let tokens = 1;
  for (let i = 0; i < length; i++) if (subject.charCodeAt(i) === DOT) tokens++;
  if (tokens !== 9 && tokens < 11) return false;
  let skip = tokens === 9 ? 4 : 6;
  let at = 0;
  while (skip > 0) if (subject.charCodeAt(at++) === DOT) skip--;
  let value = 0;
  let field = 0;
  let start = at;
  for (; field < 4 && at < length; at++) {
    const octet = subject.charCodeAt(at);
    if (octet !== DOT) {
      // Nanoseconds do not fit a double: the last six digits of the time are left out.
      if (field < 3) value = value * 10 + (octet - 48);
      continue;
    }
    if (field === 0) facts.attempts = value;
    else if (field === 1) facts.sequence = value;
    else if (field === 2) facts.deliverySequence = value;
    else facts.time = milliseconds(subject, start, at);
    field++;
    value = 0;
    start = at + 1;
  }
  return field === 4;
}

function milliseconds(subject: string, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end - 6; i++) value = value * 10 + (subject.charCodeAt(i) - 48);
  return value;
}

/** An ack subject for a delivery nobody holds: JetStream takes any count, time and pending (design §6, SWEEP). */
export function toAckSubject(stream: string, queue: string, sequence: number, deliverySequence: number): string {
  return `$JS.ACK.${stream}.${queue}.1.${sequence}.${deliverySequence}.0.0`;
}
