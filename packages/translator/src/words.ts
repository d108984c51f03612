/**
 * The words of a routing or binding key, and why one of them cannot be a subject word. The publish side (`subjects`)
 * and the bind side (`filters`) ask the same questions and differ only in the reply code and in what a wildcard means
 * to them, so the questions stand here once.
 */
import { type Fault, refuse } from "./fault.ts";

// U+FFFD is what malformed UTF-8 decodes to: two different malformed keys would be one subject.
const WORD = "[^\\s\\p{Cc}\\p{Cs}\\uFFFD.*#>]+";
const LITERAL_WORD: RegExp = new RegExp(`^${WORD}$`, "u");
const LITERAL_KEY: RegExp = new RegExp(`^${WORD}(?:\\.${WORD})*$`, "u");
const BLANK = /[\s\p{Cc}]/u;
const MALFORMED = /[\p{Cs}\uFFFD]/u;

/** Whether the word is a subject word that NATS takes literally. */
export function isLiteralWord(word: string): boolean {
  return LITERAL_WORD.test(word);
}

/** Whether a key that is not empty is a list of literal subject words. */
export function isLiteralKey(key: string): boolean {
  return LITERAL_KEY.test(key);
}

/** The rule that a key's characters break wherever they stand; undefined when only a wildcard can be at fault. */
export function spellingFault(code: Fault["code"], what: string, key: string): Fault | undefined {
  if (BLANK.test(key)) {
    return refuse(
      code,
      what,
      key,
      " holds whitespace or a control character, which no subject can; use - or _ instead",
    );
  }
  if (MALFORMED.test(key)) return refuse(code, what, key, " is not valid UTF-8; encode it as UTF-8");
  if (key !== "" && key.split(".").includes("")) {
    return refuse(code, what, key, " has an empty word, which no subject can; leave out doubled and outer dots");
  }
  return undefined;
}
