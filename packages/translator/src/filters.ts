/**
 * A binding to the filter subjects that catch exactly its messages: the table of HIP §2.1. What has no exact filter is
 * refused with 540, never approximated: a wrong delivery is worse than a refusal. Used by queue.bind, whose filters
 * join the consumer's (through `antichain`). Separate from `subjects` because a binding key may hold wildcards.
 */
import { type Fault, isFault, refuse } from "./fault.ts";
import type { ExchangeKind } from "./names.ts";
import { ROOT, toPrefix } from "./subjects.ts";
import { isLiteralKey, isLiteralWord, spellingFault } from "./words.ts";

const WHAT = "binding key ";

/**
 * The filters of one binding, sorted, none repeated, none a subset of another: one or two. Their union matches
 * {@link toSubject} of a published key exactly where {@link keyMatches} matches the key. Returns 540 where no filter
 * can do that, with the remedy; 406 where the exchange's name is not legal. A fanout ignores the key. HIP §2.1, §4.
 */
export function toFilters(
  kind: ExchangeKind,
  exchange: string,
  bindingKey: string,
  root: string = ROOT,
): readonly string[] | Fault {
  const prefix = toPrefix(exchange, root);
  if (isFault(prefix)) return prefix;
  if (kind === "fanout") return withRest(prefix);
  if (bindingKey === "") return [prefix];
  if (isLiteralKey(bindingKey)) return [`${prefix}.${bindingKey}`];
  const fault = spellingFault(540, WHAT, bindingKey);
  if (fault !== undefined) return fault;
  if (kind === "direct") {
    return refuse(540, WHAT, bindingKey, " holds one of * # >, and direct matches literally; use a topic exchange");
  }
  return topicFilters(prefix, bindingKey);
}

/** The filter of a queue's implicit binding to the default exchange under its own name, derived, never stored (HIP §2). */
export function implicitFilter(queue: string, root: string = ROOT): string {
  return `${root}._.${queue}`;
}

function topicFilters(prefix: string, bindingKey: string): readonly string[] | Fault {
  const words = bindingKey.split(".");
  const last = words.length - 1;
  for (const [position, word] of words.entries()) {
    if (word === "*" || isLiteralWord(word)) continue;
    if (word === "#") {
      if (position === last) continue;
      const rule = " has # before its end, and NATS matches a rest-wildcard only in last position";
      return refuse(540, WHAT, bindingKey, `${rule}; bind a key of * for each depth`);
    }
    if (word.includes(">")) {
      return refuse(
        540,
        WHAT,
        bindingKey,
        " holds >, NATS's own wildcard; use # as the last word for the rest of a key",
      );
    }
    return refuse(
      540,
      WHAT,
      bindingKey,
      " has a wildcard inside a word, which NATS cannot match; make it its own word",
    );
  }
  if (words[last] !== "#") return [`${prefix}.${bindingKey}`];
  return withRest([prefix, ...words.slice(0, last)].join("."));
}

/** `#` matches zero words too and `>` does not: the bare prefix and the `>` form together are `#` (HIP §2.1). */
function withRest(prefix: string): readonly string[] {
  return [prefix, `${prefix}.>`];
}
