// What the property tests draw from: small alphabets, so that collisions, overlaps and wildcards come often; and
// hostile text, so that refusals are met.
import * as fc from "fast-check";
import type { ExchangeKind } from "../src/index.ts";

const word: fc.Arbitrary<string> = fc.constantFrom("a", "b", "_", "é", "$JS", "日本", "0");
const bindingWord: fc.Arbitrary<string> = fc.oneof(word, fc.constantFrom("*", "*", "#", "a*", "#b", ">", ""));

/** A kind that has a translation. */
export const kinds: fc.Arbitrary<ExchangeKind> = fc.constantFrom<ExchangeKind>("direct", "fanout", "topic");

/** Exchange names that are legal, the default exchange among them. */
export const exchanges: fc.Arbitrary<string> = fc.constantFrom("", "t", "__", "amq-topic", "T");

/** Literal keys, the empty one among them. */
export const literalKeys: fc.Arbitrary<string> = fc.array(word, { maxLength: 4 }).map((words) => words.join("."));

/** Binding keys, many of which cannot be translated. */
export const bindingKeys: fc.Arbitrary<string> = fc.oneof(
  fc.array(bindingWord, { maxLength: 4 }).map((words) => words.join(".")),
  fc.array(fc.oneof(word, fc.constant("*")), { maxLength: 3 }).map((words) => [...words, "#"].join(".")),
);

/** Any text: unpaired surrogates, control characters and the reserved characters included. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({
    unit: fc.constantFrom("a", ".", "*", "#", ">", " ", "\n", "\ud800", "\ufffd", "é", "𝄞"),
    maxLength: 300,
  }),
);

/** Valid NATS filters over two words, at most four words long. */
export const filters: fc.Arbitrary<string> = fc
  .tuple(fc.array(fc.constantFrom("a", "b", "*"), { maxLength: 3 }), fc.constantFrom("a", "b", "*", ">", ">"))
  .map(([words, last]) => [...words, last].join("."));

/** Every subject of one to five words over an alphabet that also has a word no filter names. */
export const subjects: readonly string[] = subjectsUpTo(5, ["a", "b", "z"]);

function subjectsUpTo(length: number, alphabet: readonly string[]): string[] {
  let longest: string[] = [...alphabet];
  const all: string[] = [...longest];
  for (let words = 2; words <= length; words++) {
    longest = longest.flatMap((subject) => alphabet.map((next) => `${subject}.${next}`));
    all.push(...longest);
  }
  return all;
}

/** Asserts a synchronous property; it throws with the shrunk counterexample and the seed. */
export function law<T>(property: fc.IProperty<T>, parameters: fc.Parameters<T> = {}): void {
  // The overload for synchronous properties returns nothing.
  void fc.assert(property, parameters);
}
