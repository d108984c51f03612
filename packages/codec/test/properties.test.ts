// Properties: lossless, the same octets as amqplib's, looked at one by one, and refused when malformed.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CodecError,
  checkProperties,
  decodeProperties,
  encodeProperties,
  expirationOf,
  fromPlain,
  NO_PROPERTIES,
  PROPERTIES,
  peekProperty,
} from "../src/index.ts";
import { definitions, toAmqplib } from "./amqplib.ts";
import { amqplibTable, properties } from "./arbitraries.ts";

const BASIC = 60;

describe("properties", () => {
  test("law: decode(encode(x)) = x, encode(decode(octets)) = octets, and the check passes them", () => {
    fc.assert(
      fc.property(properties, (values) => {
        const octets = encodeProperties(values);
        expect(decodeProperties(octets)).toEqual(values);
        expect(encodeProperties(decodeProperties(octets))).toEqual(octets);
        checkProperties(octets);
      }),
      { numRuns: 300 },
    );
  });

  test("law: amqplib encodes the same properties to the same octets", () => {
    fc.assert(
      fc.property(properties, fc.option(amqplibTable, { nil: undefined }), fc.nat(2 ** 32), (values, headers, size) => {
        const { headers: _, timestamp, ...rest } = values;
        const seconds = timestamp === undefined ? undefined : BigInt.asUintN(53, timestamp);
        const theirs = definitions.encodeProperties(BASIC, 1, size, {
          ...rest,
          ...(headers && { headers: toAmqplib(headers) }),
          ...(seconds !== undefined && { timestamp: Number(seconds) }),
        });
        expect(encodeProperties({ ...rest, headers, timestamp: seconds })).toEqual(theirs.subarray(7 + 12, -1));
      }),
      { numRuns: 300 },
    );
  });

  test("law: a peek sees what decoding sees, for each property", () => {
    fc.assert(
      fc.property(properties, (values) => {
        const octets = encodeProperties(values);
        for (const [name] of PROPERTIES) expect(peekProperty(octets, name)).toEqual(values[name]);
      }),
    );
  });

  test("law: the check refuses exactly what decoding refuses, but for text that is not UTF-8", () => {
    fc.assert(
      fc.property(properties, fc.nat(), fc.nat(0xff), fc.nat(), (values, place, octet, length) => {
        const octets = encodeProperties(values);
        octets[place % octets.length] = octet;
        const spoilt = octets.subarray(0, length % 4 === 0 ? length % octets.length : octets.length);
        const decoded = errorOf(() => decodeProperties(spoilt));
        const checked = errorOf(() => checkProperties(spoilt));
        if (decoded?.includes("UTF-8")) return; // what follows the text may be malformed or not
        // A decimal is skipped at once and read in two steps, so the number of octets in the text may differ.
        expect(checked?.replace(/\d+/g, "N")).toBe(decoded?.replace(/\d+/g, "N"));
      }),
      { numRuns: 1000 },
    );
  });

  test("absent properties take no octets; undefined is absent", () => {
    expect(encodeProperties({})).toEqual(Buffer.from(NO_PROPERTIES));
    expect(encodeProperties({ contentType: undefined, deliveryMode: 2 })).toEqual(Buffer.of(0x10, 0, 2));
    expect(decodeProperties(NO_PROPERTIES)).toEqual({});
  });

  test("expirationOf skips what stands before it", () => {
    const headers = fromPlain({ "x-long": "y".repeat(1000), "x-deep": { a: [1, 2, 3] } });
    const before = { contentType: "text/plain", headers, deliveryMode: 2, timestamp: 5n };
    expect(expirationOf(encodeProperties({ ...before, expiration: "60000" }))).toBe("60000");
    expect(expirationOf(encodeProperties(before))).toBeUndefined();
    expect(expirationOf(NO_PROPERTIES)).toBeUndefined();
    expect(expirationOf(new Uint8Array())).toBeUndefined();
  });

  test.each([
    ["no flags", ""],
    ["half of the flags", "80"],
    ["continued flags", "00010000"],
    ["the unused flag", "0002"],
    ["a list that is too short", "8000"],
    ["a text beyond the end", "8000 05 61"],
    ["octets after the list", "1000 02 00"],
    ["headers beyond the end", "2000 00000005 0161"],
    ["a bad tag in the headers", "2000 00000003 0161 5a"],
  ])("%s: 502", (_, hex) => {
    const octets = Buffer.from(hex.replaceAll(" ", ""), "hex");
    expect(() => decodeProperties(octets)).toThrow(/^SYNTAX_ERROR - /);
    expect(() => checkProperties(octets)).toThrow(/^SYNTAX_ERROR - /);
  });

  test("what does not fit its type is a CodecError", () => {
    expect(() => encodeProperties({ priority: 256 })).toThrow(CodecError);
    expect(() => encodeProperties({ messageId: "x".repeat(256) })).toThrow(CodecError);
    expect(() => encodeProperties({ timestamp: -1n })).toThrow(CodecError);
  });
});

function errorOf(act: () => void): string | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof CodecError) return error.message;
    throw error;
  }
  return undefined;
}
