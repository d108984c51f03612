/**
 * Who matches whom: NATS's rule for filters and subjects, and AMQP's for binding and routing keys. The two are written
 * without each other, so that the theorem of this package (a filter matches the subject exactly where AMQP matches the
 * key) can be tested and not merely restated.
 */
import type { ExchangeKind } from "./names.ts";

const DOT = ".";

/** Whether a filter matches a subject, as NATS has it: `*` is exactly one word, `>` at the end is one word or more. */
export function matches(filter: string, subject: string): boolean {
  let f = 0;
  let s = 0;
  for (;;) {
    const filterEnd = wordEnd(filter, f);
    const subjectEnd = wordEnd(subject, s);
    const length = filterEnd - f;
    const wildcard = length === 1 ? filter[f] : undefined;
    if (wildcard === ">" && filterEnd === filter.length) return true;
    if (wildcard !== "*" && (length !== subjectEnd - s || !subject.startsWith(filter.slice(f, filterEnd), s))) {
      return false;
    }
    if (filterEnd === filter.length || subjectEnd === subject.length) {
      return filterEnd === filter.length && subjectEnd === subject.length;
    }
    f = filterEnd + 1;
    s = subjectEnd + 1;
  }
}

/**
 * Whether a binding of this kind takes a routing key, by AMQP's own rule: direct is equality, fanout takes all, and in
 * a topic `*` is exactly one word and `#`, wherever it stands, zero words or more; the empty key has no word at all, so
 * that `*` does not match it and `#` does. Never more than the product of both lengths in steps. AMQP 3.1.3.
 */
export function keyMatches(kind: ExchangeKind, bindingKey: string, routingKey: string): boolean {
  switch (kind) {
    case "direct":
      return bindingKey === routingKey;
    case "fanout":
      return true;
    case "topic":
      return topicMatches(wordsOf(bindingKey), wordsOf(routingKey));
  }
}

function topicMatches(pattern: readonly string[], words: readonly string[]): boolean {
  let p = 0;
  let w = 0;
  // The last `#` met and the word it gave up at: one more word goes to it whenever what follows fails.
  let hash = -1;
  let mark = 0;
  while (w < words.length) {
    if (pattern[p] === "#") {
      hash = p++;
      mark = w;
    } else if (p < pattern.length && (pattern[p] === "*" || pattern[p] === words[w])) {
      p++;
      w++;
    } else if (hash >= 0) {
      p = hash + 1;
      w = ++mark;
    } else {
      return false;
    }
  }
  while (pattern[p] === "#") p++;
  return p === pattern.length;
}

function wordsOf(key: string): readonly string[] {
  return key === "" ? [] : key.split(DOT);
}

function wordEnd(subject: string, start: number): number {
  const dot = subject.indexOf(DOT, start);
  return dot < 0 ? subject.length : dot;
}
