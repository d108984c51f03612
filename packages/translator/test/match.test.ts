// The two rules by themselves: AMQP's against what RabbitMQ answered, NATS's against a regular expression.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyMatches, matches } from "../src/index.ts";
import { filters, law, subjects } from "./arbitraries.ts";

describe("keyMatches, topic", () => {
  // Recorded from RabbitMQ 4: each binding key, and which of these published keys its queue then held.
  const published = ["", "a", "a.b", "a.b.c", "a.", "..", ".", "a..b", "a.**", "a.#b", "a b", "*", "#", "a.*", "ax.b"];
  it.each([
    ["", [""]],
    ["*", ["a", "a b", "*", "#"]],
    ["#", published],
    ["a.#", ["a", "a.b", "a.b.c", "a.", "a..b", "a.**", "a.#b", "a.*"]],
    ["#.a", ["a"]],
    ["#.b", ["a.b", "a..b", "ax.b"]],
    ["a.*.#", ["a.b", "a.b.c", "a.", "a..b", "a.**", "a.#b", "a.*"]],
    ["a..b", ["a..b"]],
    ["*.*", ["a.b", "a.", ".", "a.**", "a.#b", "a.*", "ax.b"]],
    ["a.", ["a."]],
    ["#.#", published],
    ["a.#.#", ["a", "a.b", "a.b.c", "a.", "a..b", "a.**", "a.#b", "a.*"]],
    ["a.**", ["a.**"]],
    ["a.#b", ["a.#b"]],
    ["a.b*", []],
    [".", ["."]],
    ["a b", ["a b"]],
    ["a*", []],
  ])("binding key '%s' takes what it takes in RabbitMQ", (bindingKey, taken) => {
    expect(published.filter((key) => keyMatches("topic", bindingKey, key))).toEqual(taken);
  });

  it("law: it is the regular expression in which * is one word and # any number of them", () => {
    const words = (alphabet: readonly string[]) => fc.array(fc.constantFrom(...alphabet), { maxLength: 6 });
    law(
      fc.property(words(["a", "b", "*", "#", "#"]), words(["a", "b", "c"]), (pattern, key) => {
        const part = (word: string) => (word === "#" ? "(?:\\w,)*" : word === "*" ? "\\w," : `${word},`);
        const expected = new RegExp(`^${pattern.map(part).join("")}$`).test(key.map((word) => `${word},`).join(""));
        expect(keyMatches("topic", pattern.join("."), key.join("."))).toBe(expected);
      }),
      { numRuns: 10_000 },
    );
  });

  it("does not blow up on many # (255 octets of each)", () => {
    const started = performance.now();
    expect(keyMatches("topic", `${"#.a.".repeat(63)}b`, `${"a.".repeat(126)}a`)).toBe(false);
    expect(performance.now() - started).toBeLessThan(50);
  });
});

describe("keyMatches, direct and fanout", () => {
  it("is equality, and everything", () => {
    expect(keyMatches("direct", "a.#", "a.#")).toBe(true);
    expect(keyMatches("direct", "a.#", "a.b")).toBe(false);
    expect(keyMatches("direct", "", "")).toBe(true);
    expect(keyMatches("fanout", "a", "b")).toBe(true);
  });
});

describe("matches", () => {
  it("law: it is the regular expression in which * is one word and > one or more", () => {
    law(
      fc.property(filters, (filter) => {
        const parts = filter.split(".").map((word) => (word === ">" ? ".+" : word === "*" ? "[^.]+" : word));
        const pattern = new RegExp(`^${parts.join("\\.")}$`);
        for (const subject of subjects) {
          expect(matches(filter, subject), `${filter} on ${subject}`).toBe(pattern.test(subject));
        }
      }),
      { numRuns: 200 },
    );
  });

  it("takes no prefix of a word for the word", () => {
    expect(matches("amqp.ab", "amqp.a")).toBe(false);
    expect(matches("amqp.a", "amqp.ab")).toBe(false);
    expect(matches("amqp.>", "amqpx.a")).toBe(false);
    expect(matches("a*", "ab")).toBe(false);
  });
});
