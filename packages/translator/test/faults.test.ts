// Every refusal names its rule and a remedy, in one line that fits behind the reply code's name, whatever was sent.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkKind,
  checkName,
  FAULT_OCTETS,
  type Fault,
  isFault,
  toFilters,
  toSubject,
  truncate,
} from "../src/index.ts";
import { anyText, law } from "./arbitraries.ts";

const octets = (text: string) => new TextEncoder().encode(text).length;
const REMEDY = /(?:; |, )(?:use|choose|leave (?:them )?out|encode|bind|make|let|publish|declare)\b/;

function fault(value: unknown): Fault {
  if (!isFault(value)) throw new Error(`expected a refusal, got ${JSON.stringify(value)}`);
  return value;
}

describe("names (HIP §2)", () => {
  it.each(["a", "A-b_9", "_", "-", "x".repeat(128)])("takes the queue name %s", (name) => {
    expect(checkName("queue", name)).toBeUndefined();
  });

  it.each([
    ["queue", "", "is empty"],
    ["queue", "a.b", "is not one subject word"],
    ["queue", "a:b", "is not one subject word"],
    ["queue", "é", "is not one subject word"],
    ["queue", "a\n", "is not one subject word"],
    ["queue", "x".repeat(129), "is longer than 128 characters"],
    ["exchange", "_", "is the subject word of the default exchange"],
    ["exchange", "a.b", "is not one subject word"],
  ] as const)("refuses the %s name %j with 406", (what, name, rule) => {
    const { code, text } = fault(checkName(what, name));
    expect(code).toBe(406);
    expect(text).toContain(rule);
    expect(text).toMatch(new RegExp(`^${what} name '`));
  });
});

describe("kinds (HIP §2, §4)", () => {
  it.each(["direct", "fanout", "topic"])("takes %s", (kind) => {
    expect(checkKind(kind)).toBe(kind);
  });

  it.each([
    "headers",
    "x-consistent-hash",
    "x-modulus-hash",
    "x-random",
    "x-local-random",
    "x-delayed-message",
    "x-recent-history",
    "x-jms-topic",
    "x-message-deduplication",
    "x-lvc",
    "x-rtopic",
    "x-jms-headers",
  ])("refuses %s with 540, naming it and the remedy", (kind) => {
    const { code, text } = fault(checkKind(kind));
    expect(code).toBe(540);
    expect(text).toContain(`exchange type '${kind}' `);
    expect(text).toMatch(REMEDY);
    expect(octets(text)).toBeLessThanOrEqual(FAULT_OCTETS);
  });

  it.each(["nonsense", "Direct", "x-nonsense", "constructor", "__proto__"])(
    "refuses %s in RabbitMQ's words",
    (kind) => {
      expect(checkKind(kind)).toEqual({
        kind: "fault",
        code: 406,
        text: `unknown exchange type '${kind}'; use direct, fanout or topic`,
      });
      expect(fault(checkKind("")).text).toBe("invalid exchange type ''; use direct, fanout or topic");
    },
  );
});

describe("keys", () => {
  it.each([
    ["a..b", "empty word"],
    [".", "empty word"],
    ["a.", "empty word"],
    ["a.*", "holds one of"],
    ["#", "holds one of"],
    ["a>b", "holds one of"],
    ["a b", "whitespace"],
    ["a\r\nPUB x 0", "whitespace"],
    ["a\u0000", "control character"],
    ["a\u0085b", "control character"],
    ["a\ufffdb", "UTF-8"],
    ["a\ud800", "UTF-8"],
  ])("refuses to publish under %j with 406", (key, rule) => {
    const { code, text } = fault(toSubject("x", key));
    expect(code).toBe(406);
    expect(text).toContain(rule);
    expect(text).toMatch(/^routing key '/);
  });

  it.each([
    ["topic", "a.#.b", "# before its end"],
    ["topic", "#.#", "# before its end"],
    ["topic", "a.b*", "wildcard inside a word"],
    ["topic", "a#", "wildcard inside a word"],
    ["topic", "**", "wildcard inside a word"],
    ["topic", "a.>", "NATS's own wildcard"],
    ["topic", "a..b", "empty word"],
    ["topic", "a. b", "whitespace"],
    ["direct", "a.*", "matches literally"],
    ["direct", "#", "matches literally"],
    ["direct", "a..b", "empty word"],
  ] as const)("refuses to bind a %s exchange with %j, 540", (kind, key, rule) => {
    const { code, text } = fault(toFilters(kind, "x", key));
    expect(code).toBe(540);
    expect(text).toContain(rule);
    expect(text).toMatch(/^binding key '/);
  });
});

describe("laws", () => {
  it("fit: every refusal takes at most 200 octets, one printable line, and keeps its remedy whole", () => {
    let seen = 0;
    law(
      fc.property(anyText, (text) => {
        const results = [
          checkName("queue", text),
          checkName("exchange", text),
          checkKind(text),
          toSubject("x", text),
          toSubject(text, "k"),
          toFilters("topic", "x", text),
          toFilters("direct", "x", text),
          toFilters("fanout", text, ""),
        ];
        for (const result of results) {
          if (!isFault(result)) continue;
          seen++;
          expect(octets(result.text), result.text).toBeLessThanOrEqual(FAULT_OCTETS);
          expect(result.text).toMatch(REMEDY);
          expect(result.text).not.toMatch(/[\p{Cc}\p{Cs}\u2028\u2029]/u);
        }
      }),
      { numRuns: 3_000 },
    );
    expect(seen).toBeGreaterThan(5_000);
  });

  it("room: what is too long is cut to exactly 200 octets, in the middle of nothing", () => {
    const refusals = [
      checkName("queue", "x".repeat(300)),
      checkKind("x".repeat(300)),
      toSubject("x", `${"k".repeat(255)}*`),
    ];
    for (const refused of refusals) expect(octets(fault(refused).text)).toBe(FAULT_OCTETS);
    expect(octets(fault(checkKind("é".repeat(127))).text)).toBeGreaterThanOrEqual(FAULT_OCTETS - 1);
  });

  it("truncate: the text itself where it fits, else a head of whole characters and … within the limit", () => {
    const wellFormed = fc.string({ unit: "binary", maxLength: 40 });
    law(
      fc.property(wellFormed, fc.integer({ min: 0, max: 60 }), (text, limit) => {
        const cut = truncate(text, limit);
        expect(octets(cut)).toBeLessThanOrEqual(limit);
        if (octets(text) <= limit) {
          expect(cut).toBe(text);
        } else if (limit >= 3) {
          expect(cut.endsWith("…")).toBe(true);
          const head = cut.slice(0, -1);
          expect(text.startsWith(head)).toBe(true);
          // The longest such head: one more character would not have fitted.
          const [next = ""] = text.slice(head.length);
          expect(octets(head + next) + 3).toBeGreaterThan(limit);
        } else {
          expect(cut).toBe("");
        }
      }),
      { numRuns: 5_000 },
    );
  });
});
