// The command assembler: what frames make a command, and what a frame out of its order answers.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Assembled,
  CommandAssembler,
  encodeMethod,
  encodeProperties,
  FrameType,
  fromPlain,
  NO_PROPERTIES,
} from "../src/index.ts";
import { octets } from "./arbitraries.ts";

const PUBLISH = { exchange: "", routingKey: "q", mandatory: false, immediate: false };
const publish = encodeMethod("basic.publish", PUBLISH);
const qos = encodeMethod("basic.qos", { prefetchSize: 0, prefetchCount: 1, global: false });

function header(bodySize: number | bigint, properties: Uint8Array = NO_PROPERTIES, classId = 60, weight = 0): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(classId, 0);
  head.writeUInt16BE(weight, 2);
  head.writeBigUInt64BE(BigInt(bodySize), 4);
  return Buffer.concat([head, properties]);
}

type Step = readonly [FrameType, Uint8Array];
const method = (payload: Uint8Array): Step => [FrameType.METHOD, payload];
const head = (payload: Uint8Array): Step => [FrameType.HEADER, payload];
const body = (payload: Uint8Array): Step => [FrameType.BODY, payload];

function run(steps: readonly Step[], assembler = new CommandAssembler()): Assembled[] {
  return steps.map(([type, payload]) => assembler.process(type, payload));
}
const kinds = (results: readonly Assembled[]) => results.map((result) => result.kind);
const bodyOf = (result: Assembled | undefined) =>
  result?.kind === "command" && result.body ? Buffer.concat(result.body) : undefined;

describe("commands", () => {
  test("a method without content is a command at once", () => {
    expect(run([method(qos)])).toEqual([
      {
        kind: "command",
        content: false,
        method: { name: "basic.qos", fields: { prefetchSize: 0, prefetchCount: 1, global: false } },
        properties: undefined,
        body: undefined,
        bodySize: 0,
      },
    ]);
  });

  test("an empty body is a command with its header", () => {
    const properties = encodeProperties({ contentType: "text/plain" });
    const assembler = new CommandAssembler();
    expect(assembler.idle).toBe(true);
    expect(run([method(publish)], assembler)).toEqual([{ kind: "need-more" }]);
    expect(assembler.idle).toBe(false);
    expect(run([head(header(0, properties))], assembler)).toEqual([
      {
        kind: "command",
        content: true,
        method: { name: "basic.publish", fields: { ...PUBLISH, ticket: 0 } },
        properties,
        body: [],
        bodySize: 0,
      },
    ]);
    expect(assembler.idle).toBe(true);
  });

  test("the header is announced, then the body gathered; empty body frames are nothing", () => {
    const parts = ["", "he", "", "llo"].map((text) => body(Buffer.from(text)));
    const results = run([method(publish), head(header(5)), ...parts, method(qos)]);
    expect(kinds(results)).toEqual([
      "need-more",
      "header",
      "need-more",
      "need-more",
      "need-more",
      "command",
      "command",
    ]);
    expect(results[1]).toMatchObject({ bodySize: 5, properties: Buffer.from(NO_PROPERTIES) });
    expect(bodyOf(results[5])?.toString()).toBe("hello");
    expect(results[5]).toMatchObject({ bodySize: 5 });
  });

  test("law: a body in any frames comes out whole, in few pieces, large ones uncopied", () => {
    const size = fc.oneof(fc.nat(10), fc.nat(3000), fc.integer({ min: 2048, max: 6000 }));
    fc.assert(
      fc.property(fc.array(size, { minLength: 1, maxLength: 30 }), (sizes) => {
        const payloads = sizes.map((length, i) => Buffer.alloc(length, i + 1));
        const whole = Buffer.concat(payloads);
        fc.pre(whole.length > 0);
        const results = run([method(publish), head(header(whole.length)), ...payloads.map(body)]);
        const last = results.findLast((result) => result.kind === "command");
        expect(bodyOf(last)).toEqual(whole);
        const pieces = last?.kind === "command" ? (last.body ?? []) : [];
        const large = payloads.filter((payload) => payload.length >= 2048);
        for (const payload of large) expect(pieces).toContain(payload);
        expect(pieces.length - large.length).toBeLessThanOrEqual(large.length + 1 + Math.ceil(whole.length / 2048));
      }),
    );
  });

  test("a body of 100,000 frames of one octet is 25 pieces", () => {
    const assembler = new CommandAssembler();
    run([method(publish), head(header(100_000))], assembler);
    let last: Assembled | undefined;
    for (let i = 0; i < 100_000; i++) last = assembler.process(FrameType.BODY, Buffer.of(i & 0xff));
    expect(last?.kind === "command" && last.body?.length).toBe(25);
    expect(bodyOf(last)?.every((octet, i) => octet === (i & 0xff))).toBe(true);
  });

  test("discard after the header drops the body frames, and the channel goes on", () => {
    const assembler = new CommandAssembler();
    run([method(publish), head(header(10))], assembler);
    assembler.discard();
    const rest = run([body(Buffer.alloc(4)), body(Buffer.alloc(6)), method(qos)], assembler);
    expect(kinds(rest)).toEqual(["need-more", "need-more", "command"]);
    assembler.discard(); // nothing to drop: no effect
    expect(kinds(run([method(publish), head(header(0))], assembler))).toEqual(["need-more", "command"]);
  });

  test("a size of 2^64-1 is announced, not believed", () => {
    const [, announced] = run([method(publish), head(header(2n ** 64n - 1n))]);
    expect(announced).toMatchObject({ kind: "header", bodySize: 2 ** 64 });
  });

  test("the weight is ignored", () => {
    expect(kinds(run([method(publish), head(header(0, NO_PROPERTIES, 60, 1))]))).toEqual(["need-more", "command"]);
  });

  const NOT_METHOD = "UNEXPECTED_FRAME - expected method frame, got non method frame instead";
  const NOT_HEADER = "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead";
  const NOT_BODY = "UNEXPECTED_FRAME - expected content body, got non content body frame instead";
  // Codes and texts of RabbitMQ 4 but for the last six: it answers 505 to too much body when the next frame comes,
  // 541 to malformed properties, 501 to malformed fields, and drops the socket for an unknown method.
  test.each<[string, Step[], number, string, number]>([
    ["a body first", [body(publish)], 505, NOT_METHOD, 0],
    ["a header first", [head(header(0))], 505, NOT_METHOD, 0],
    ["a body for a header", [method(publish), body(qos)], 505, NOT_HEADER, 40],
    ["a method for a header", [method(publish), method(qos)], 505, NOT_HEADER, 40],
    ["a method for a body", [method(publish), head(header(2)), method(qos)], 505, NOT_BODY, 40],
    ["a header for a body", [method(publish), head(header(2)), head(header(2))], 505, NOT_BODY, 40],
    ["a body after an empty one", [method(publish), head(header(0)), body(Buffer.alloc(0))], 505, NOT_METHOD, 0],
    [
      "a header of another class",
      [method(publish), head(header(0, NO_PROPERTIES, 50))],
      505,
      "UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead",
      40,
    ],
    [
      "a short header",
      [method(publish), head(Buffer.alloc(11))],
      501,
      "FRAME_ERROR - a content header of 11 octets",
      40,
    ],
    [
      "too much body",
      [method(publish), head(header(2)), body(Buffer.alloc(3))],
      505,
      "UNEXPECTED_FRAME - content body exceeds the size in its header by 1 octets",
      40,
    ],
    [
      "no properties at all",
      [method(publish), head(header(0, Buffer.alloc(0)))],
      502,
      "SYNTAX_ERROR - truncated: 2 octets announced, 0 left",
      40,
    ],
    [
      "properties with a bad table",
      [method(publish), head(header(0, Buffer.from("2000000000030161ff", "hex")))],
      502,
      "SYNTAX_ERROR - unknown field type 255",
      40,
    ],
    [
      "a malformed method",
      [method(qos.subarray(0, -1))],
      502,
      "SYNTAX_ERROR - cannot decode basic.qos: truncated: 1 octets announced, 0 left",
      10,
    ],
    ["an unknown method", [method(Buffer.of(0, 60, 0, 99))], 503, "COMMAND_INVALID - unknown method 60.99", 99],
    ["no method", [method(Buffer.of(0, 60))], 501, "FRAME_ERROR - a method frame of 2 octets names no method", 0],
  ])("%s: an error", (_, steps, code, text, methodId) => {
    const last = run(steps).at(-1);
    expect(last).toMatchObject({ kind: "error", code, text, methodId, classId: methodId === 0 ? 0 : 60 });
  });

  test("law: any frames in any order give results, never an exception", () => {
    const deep = encodeProperties({ headers: fromPlain({ a: { b: [1] } }) });
    const step = fc.oneof(
      fc.tuple(fc.constantFrom(...Object.values(FrameType)), octets(30)),
      fc.constantFrom<Step>(
        method(publish),
        method(qos),
        head(header(3)),
        head(header(0, deep)),
        body(Buffer.alloc(3)),
      ),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        for (const result of run(steps)) {
          if (result.kind === "error") expect(Buffer.byteLength(result.text)).toBeLessThanOrEqual(255);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
