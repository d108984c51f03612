// The x- arguments: what is accepted, what is refused by its name, and the form in which declarations are compared.
import type { FieldTable, FieldValue } from "@amqp/codec";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonical, consumerArguments, exchangeArguments, queueArguments } from "../../src/amqp091/arguments.ts";

const longstr = (value: string): FieldValue => ({ type: "longstr", value });
const whole = fc.integer({ min: -128, max: 127 });
const value: fc.Arbitrary<FieldValue> = fc.oneof(
  fc.string().map(longstr),
  whole.map((value): FieldValue => ({ type: "int32", value })),
  fc.boolean().map((value): FieldValue => ({ type: "bool", value })),
  fc.constant<FieldValue>({ type: "void", value: null }),
  fc.array(fc.string().map(longstr), { maxLength: 3 }).map((value): FieldValue => ({ type: "array", value })),
);
const table: fc.Arbitrary<FieldTable> = fc.uniqueArray(fc.tuple(fc.string(), value), {
  selector: ([name]) => name,
  maxLength: 6,
});

describe("canonical", () => {
  it("law: the order of entries does not matter", () => {
    fc.assert(
      fc.property(table, fc.nat(), (entries, turn) => {
        const at = entries.length === 0 ? 0 : turn % entries.length;
        expect(canonical([...entries.slice(at), ...entries.slice(0, at)].reverse())).toBe(canonical(entries));
      }),
    );
  });

  it("law: the width of an integer does not matter, its value does", () => {
    fc.assert(
      fc.property(whole, whole, (a, b) => {
        const as = (type: "int8" | "int32", value: number): string => canonical([["n", { type, value }]]);
        expect(as("int8", a)).toBe(canonical([["n", { type: "int64", value: BigInt(a) }]]));
        expect(as("int8", a) === as("int32", b)).toBe(a === b);
      }),
    );
  });

  it("law: tables that differ in a name or a value differ", () => {
    fc.assert(
      fc.property(table, fc.string(), fc.string(), (entries, name, text) => {
        const without = entries.filter(([key]) => key !== name);
        expect(canonical([...without, [name, longstr(text)]])).not.toBe(canonical(without));
        expect(canonical([...without, [name, longstr(text)]])).not.toBe(
          canonical([...without, [name, longstr(`${text}!`)]]),
        );
      }),
    );
  });

  it("is empty for an empty table", () => {
    expect(canonical([])).toBe("");
  });
});

describe("queueArguments", () => {
  it("takes x-queue-type classic and quorum, and classic where it is absent", () => {
    expect(queueArguments("q", [])).toEqual({ type: "classic", canonical: "" });
    expect(queueArguments("q", [["x-queue-type", longstr("classic")]])).toEqual({ type: "classic", canonical: "" });
    expect(queueArguments("q", [["x-queue-type", longstr("quorum")]])).toEqual({ type: "quorum", canonical: "" });
    expect(queueArguments("q", [["x-queue-type", longstr("stream")]])).toMatchObject({
      code: 406,
      text: `invalid arg 'x-queue-type' for queue 'q' in vhost '/': "unsupported queue type 'stream'"`,
    });
    expect(queueArguments("q", [["x-queue-type", { type: "int32", value: 1 }]])).toMatchObject({ code: 406 });
  });

  it.each([
    "x-message-ttl",
    "x-expires",
    "x-max-length",
    "x-dead-letter-exchange",
    "x-single-active-consumer",
    "x-foo",
  ])("refuses %s by its name", (name) => {
    const refusal = queueArguments("q", [[name, { type: "int32", value: 1 }]]);
    expect(refusal).toMatchObject({ code: 540, scope: "channel" });
    expect(refusal).toHaveProperty("text", expect.stringContaining(name));
  });

  it("does not compare a client's own notes, and compares placement", () => {
    expect(queueArguments("q", [["owner", longstr("me")]])).toEqual({ type: "classic", canonical: "" });
    const lazy = queueArguments("q", [["x-queue-mode", longstr("lazy")]]);
    expect(lazy).toHaveProperty("canonical", expect.stringContaining("lazy"));
  });
});

describe("arguments of exchanges and consumers", () => {
  it("refuses what would change behaviour", () => {
    expect(exchangeArguments([["alternate-exchange", longstr("ae")]])).toMatchObject({ code: 540 });
    expect(exchangeArguments([["x-delayed-type", longstr("direct")]])).toMatchObject({ code: 540 });
    expect(exchangeArguments([["note", longstr("n")]])).toBe("");
    expect(consumerArguments([["x-priority", { type: "int32", value: 1 }]])).toMatchObject({ code: 540 });
    expect(consumerArguments([["x-cancel-on-ha-failover", { type: "bool", value: true }]])).toBeUndefined();
  });
});
