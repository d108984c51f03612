// The laws that make the translation one: the theorem of HIP §2.1, injectivity and the inverse of HIP §2.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fromSubject,
  implicitFilter,
  isFault,
  isSubset,
  keyMatches,
  matches,
  toFilters,
  toSubject,
} from "../src/index.ts";
import { anyText, bindingKeys, exchanges, kinds, law, literalKeys } from "./arbitraries.ts";

const RUNS = { numRuns: 5_000 };

describe("HIP §2.1, the table", () => {
  it.each([
    ["topic", "t", "a.*", ["amqp.t.a.*"]],
    ["topic", "t", "a.#", ["amqp.t.a", "amqp.t.a.>"]],
    ["topic", "t", "#", ["amqp.t", "amqp.t.>"]],
    ["topic", "t", "", ["amqp.t"]],
    ["topic", "t", "*.a.*", ["amqp.t.*.a.*"]],
    ["topic", "t", "*.#", ["amqp.t.*", "amqp.t.*.>"]],
    ["fanout", "f", "anything", ["amqp.f", "amqp.f.>"]],
    ["fanout", "f", "", ["amqp.f", "amqp.f.>"]],
    ["fanout", "f", "a..#.b >", ["amqp.f", "amqp.f.>"]],
    ["direct", "d", "k", ["amqp.d.k"]],
    ["direct", "d", "k.l", ["amqp.d.k.l"]],
    ["direct", "d", "", ["amqp.d"]],
  ] as const)("%s exchange %s, binding key '%s' is %j", (kind, exchange, key, filters) => {
    expect(toFilters(kind, exchange, key)).toEqual(filters);
  });

  it("derives a queue's implicit binding as the direct binding of the default exchange", () => {
    expect(implicitFilter("q")).toBe("amqp._.q");
    expect(toFilters("direct", "", "q")).toEqual([implicitFilter("q")]);
  });
});

describe("HIP §2, subjects", () => {
  it.each([
    ["", "", "amqp._"],
    ["", "_", "amqp._._"],
    ["", "q", "amqp._.q"],
    ["x", "", "amqp.x"],
    ["x", "a.b", "amqp.x.a.b"],
    ["x", "$JS.é", "amqp.x.$JS.é"],
  ])("exchange '%s' with key '%s' is %s", (exchange, routingKey, subject) => {
    expect(toSubject(exchange, routingKey)).toBe(subject);
    expect(fromSubject(subject)).toEqual({ exchange, routingKey });
  });

  it("takes another root", () => {
    expect(toSubject("x", "k", "org.amqp")).toBe("org.amqp.x.k");
    expect(fromSubject("org.amqp.x.k", "org.amqp")).toEqual({ exchange: "x", routingKey: "k" });
    expect(toFilters("topic", "x", "#", "org")).toEqual(["org.x", "org.x.>"]);
    expect(implicitFilter("q", "org")).toBe("org._.q");
  });

  it("reads what a native publisher chose, and nothing a delivery cannot carry", () => {
    expect(fromSubject("amqp.t.a*")).toEqual({ exchange: "t", routingKey: "a*" });
    expect(fromSubject(`amqp.t.${"k".repeat(255)}`)?.routingKey).toHaveLength(255);
    expect(fromSubject(`amqp.t.${"é".repeat(127)}`)?.routingKey).toHaveLength(127);
    for (const subject of [
      "amqp",
      "amqp.",
      "amqpx.t.k",
      "kafka-orders-0.data",
      "amqp.é.k",
      "amqp.t.",
      `amqp.${"x".repeat(129)}`,
      `amqp.t.${"k".repeat(256)}`,
      `amqp.t.${"é".repeat(128)}`,
    ]) {
      expect(fromSubject(subject), subject).toBeUndefined();
    }
  });
});

describe("laws", () => {
  it("theorem: some filter matches the subject exactly where AMQP's rule matches the key", () => {
    let translated = 0;
    let matched = 0;
    law(
      fc.property(kinds, exchanges, bindingKeys, literalKeys, (kind, exchange, bindingKey, routingKey) => {
        const filters = toFilters(kind, exchange, bindingKey);
        const subject = toSubject(exchange, routingKey);
        if (isFault(subject)) throw new Error("a literal key was refused");
        if (isFault(filters)) return;
        const expected = keyMatches(kind, bindingKey, routingKey);
        expect(filters.some((filter) => matches(filter, subject))).toBe(expected);
        translated++;
        if (expected) matched++;
      }),
      { numRuns: 20_000 },
    );
    // The property must have been about something.
    expect(translated).toBeGreaterThan(5_000);
    expect(matched).toBeGreaterThan(1_000);
    expect(translated - matched).toBeGreaterThan(1_000);
  });

  it("theorem, converse: what is refused on a topic or direct exchange would need a filter NATS has not", () => {
    law(
      fc.property(fc.constantFrom("direct", "topic"), bindingKeys, (kind, bindingKey) => {
        const words = bindingKey === "" ? [] : bindingKey.split(".");
        const wildcard = (word: string, position: number) =>
          kind === "topic" && (word === "*" || (word === "#" && position === words.length - 1));
        const exact = words.every((word, position) => wildcard(word, position) || /^[^*#>]+$/.test(word));
        expect(isFault(toFilters(kind, "x", bindingKey))).toBe(!exact);
      }),
      RUNS,
    );
  });

  it("separation: a filter of one exchange matches no subject of another", () => {
    law(
      fc.property(kinds, exchanges, exchanges, bindingKeys, literalKeys, (kind, bound, published, binding, key) => {
        const filters = toFilters(kind, bound, binding);
        const subject = toSubject(published, key);
        if (bound === published || isFault(filters) || isFault(subject)) return;
        expect(filters.some((filter) => matches(filter, subject))).toBe(false);
      }),
      RUNS,
    );
  });

  it("injectivity: two pairs of exchange and key share a subject only where they are the same pair", () => {
    const pairs = fc.tuple(fc.oneof(exchanges, anyText), fc.oneof(literalKeys, anyText));
    law(
      fc.property(pairs, pairs, (one, other) => {
        const subject = toSubject(...one);
        if (isFault(subject)) return;
        expect(subject === toSubject(...other)).toBe(one[0] === other[0] && one[1] === other[1]);
      }),
      RUNS,
    );
  });

  it("inverse: fromSubject gives back what toSubject took", () => {
    law(
      fc.property(fc.oneof(exchanges, anyText), fc.oneof(literalKeys, anyText), (exchange, routingKey) => {
        const subject = toSubject(exchange, routingKey);
        if (isFault(subject) || new TextEncoder().encode(routingKey).length > 255) return;
        expect(fromSubject(subject)).toEqual({ exchange, routingKey });
      }),
      RUNS,
    );
  });

  it("other direction: a subject that is read and can be published again is the same subject", () => {
    law(
      fc.property(fc.oneof(anyText, literalKeys), (rest) => {
        const read = fromSubject(`amqp.${rest}`);
        if (read === undefined) return;
        const subject = toSubject(read.exchange, read.routingKey);
        expect(isFault(subject) || subject === `amqp.${rest}`).toBe(true);
      }),
      RUNS,
    );
  });

  it("encoding: a subject survives UTF-8, holds nothing that splits NATS's lines, and no empty word", () => {
    law(
      fc.property(fc.oneof(literalKeys, anyText), (key) => {
        const subject = toSubject("x", key);
        if (isFault(subject)) return;
        expect(new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(subject))).toBe(subject);
        expect(subject).not.toMatch(/[\s\p{Cc}*#>]|\.\.|\.$/u);
      }),
      RUNS,
    );
  });

  it("order: the filters of one binding are sorted, distinct and none a subset of another", () => {
    law(
      fc.property(kinds, exchanges, bindingKeys, (kind, exchange, bindingKey) => {
        const filters = toFilters(kind, exchange, bindingKey);
        if (isFault(filters)) return;
        expect(filters.every((filter, i) => i === 0 || (filters[i - 1] ?? "") < filter)).toBe(true);
        for (const a of filters) for (const b of filters) expect(isSubset(a, b)).toBe(a === b);
      }),
      RUNS,
    );
  });
});
