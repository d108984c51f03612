// The method table against the two other descriptions of the protocol: docs/spec/amqp-0-9-1.json and amqplib.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CodecError,
  decodeMethod,
  encodeMethod,
  type FieldsInput,
  type FieldTable,
  FRAME_END,
  FRAME_MIN_SIZE,
  FrameType,
  METHODS,
  type MethodName,
  type MethodSpec,
  methodFrame,
  methodName,
  PROPERTIES,
  ReplyCode,
} from "../src/index.ts";
import { definitions, toAmqplib } from "./amqplib.ts";
import { amqplibTable, fieldsOf, methodNames, octets, wireValues } from "./arbitraries.ts";

interface Specification {
  constants: { name: string; value: number }[];
  classes: {
    id: number;
    name: string;
    properties?: [string, string][];
    methods: {
      id: number;
      name: string;
      from: string;
      sync?: boolean;
      content?: boolean;
      fields: [string, string][];
    }[];
  }[];
}

const specification: Specification = JSON.parse(
  readFileSync(new URL("../../../docs/spec/amqp-0-9-1.json", import.meta.url), "utf8"),
);
const camel = (name: string) => name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
const fields = (rows: readonly (readonly [string, string])[]) => rows.map(([name, type]) => [camel(name), type]);

describe("the tables are the specification", () => {
  test("methods: ids, senders, flags, and fields in order", () => {
    const expected: Record<string, MethodSpec> = {};
    for (const { id: classId, name, methods } of specification.classes) {
      for (const { id, name: method, from, sync, content, fields: rows } of methods) {
        const row = {
          classId,
          methodId: id,
          from,
          ...(sync && { sync }),
          ...(content && { content }),
          fields: fields(rows),
        };
        expected[`${name}.${method}`] = row as unknown as MethodSpec;
      }
    }
    expect(METHODS).toEqual(expected);
    expect(methodNames).toHaveLength(66);
  });

  test("properties", () => {
    expect(PROPERTIES).toEqual(fields(specification.classes.find((c) => c.name === "basic")?.properties ?? []));
  });

  test("constants", () => {
    const ours: Record<string, number> = {
      "FRAME-METHOD": FrameType.METHOD,
      "FRAME-HEADER": FrameType.HEADER,
      "FRAME-BODY": FrameType.BODY,
      "FRAME-HEARTBEAT": FrameType.HEARTBEAT,
      "FRAME-MIN-SIZE": FRAME_MIN_SIZE,
      "FRAME-END": FRAME_END,
    };
    for (const [name, code] of Object.entries(ReplyCode)) ours[name.replaceAll("_", "-")] = code;
    expect(ours).toEqual(Object.fromEntries(specification.constants.map(({ name, value }) => [name, value])));
  });

  test("ids lead to names and nothing else does", () => {
    for (const name of methodNames) expect(methodName(METHODS[name].classId, METHODS[name].methodId)).toBe(name);
    expect(methodName(60, 99)).toBeUndefined();
    expect(methodName(0, 0)).toBeUndefined();
  });
});

// Fields that one of the two descriptions names otherwise would show here.
describe.each(methodNames)("%s", (name) => {
  const spec: MethodSpec = METHODS[name];
  const id = (spec.classId << 16) | spec.methodId;
  const longlong = fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }); // amqplib knows numbers only
  const amqplibFields = fieldsOf(name, { ...wireValues, longlong, table: amqplibTable });
  const arbitrary = fieldsOf(name) as fc.Arbitrary<FieldsInput<MethodName>>;

  test("amqplib lists the same fields in the same order", () => {
    const { args } = definitions.info(id);
    expect(args.map((arg) => [arg.name, arg.type])).toEqual(spec.fields);
  });

  test("law: amqplib encodes the same fields to the same octets, and ours decode to what was encoded", () => {
    fc.assert(
      fc.property(amqplibFields, fc.nat(0xffff), (values, channel) => {
        const ours: Record<string, unknown> = { ...values };
        const theirs: Record<string, unknown> = { ...values };
        for (const [field, type] of spec.fields) {
          if (type === "table") theirs[field] = toAmqplib(ours[field] as FieldTable);
          else if (type === "longlong") theirs[field] = Number(ours[field]);
        }
        const framed = methodFrame(channel, name, ours as FieldsInput<MethodName>);
        expect(framed).toEqual(definitions.encodeMethod(id, channel, theirs));
        expect(decodeMethod(framed.subarray(7, -1))).toEqual({ name, fields: ours });
      }),
      { numRuns: 40 },
    );
  });

  test("law: decode(encode(x)) = x, and encode(decode(octets)) = octets", () => {
    fc.assert(
      fc.property(arbitrary, (values) => {
        const payload = encodeMethod(name, values);
        const method = decodeMethod(payload);
        expect(method).toEqual({ name, fields: values });
        expect(encodeMethod(name, method.fields as FieldsInput<MethodName>)).toEqual(payload);
      }),
      { numRuns: 40 },
    );
  });

  test("law: every truncation and every octet more is a 502 naming the method, but for less than an id: 501", () => {
    fc.assert(
      fc.property(arbitrary, (values) => {
        const payload = encodeMethod(name, values);
        for (const length of new Set([...Array(Math.min(payload.length, 64)).keys(), payload.length - 1])) {
          expect(replyOf(() => decodeMethod(payload.subarray(0, length)))).toEqual(
            length < 4 ? [501, 0, 0] : [502, spec.classId, spec.methodId],
          );
        }
        const longer = Buffer.concat([payload, Buffer.of(0)]);
        expect(replyOf(() => decodeMethod(longer))).toEqual([502, spec.classId, spec.methodId]);
      }),
      { numRuns: 5 },
    );
  });
});

function replyOf(act: () => unknown): number[] {
  try {
    act();
  } catch (error) {
    if (error instanceof CodecError) return [error.replyCode, error.classId, error.methodId];
    throw error;
  }
  return [];
}

describe("methods", () => {
  test("law: any payload is a method that encodes again, or a CodecError whose text fits a shortstr", () => {
    const payload = fc
      .tuple(fc.constantFrom(...methodNames), octets(60))
      .map(([name, rest]) => Buffer.concat([Buffer.of(0, METHODS[name].classId, 0, METHODS[name].methodId), rest]));
    fc.assert(
      fc.property(fc.oneof(payload, octets(12)), (bytes) => {
        try {
          const { name, fields } = decodeMethod(bytes);
          expect(encodeMethod(name, fields as FieldsInput<MethodName>)).toHaveLength(bytes.length);
        } catch (error) {
          expect(error).toBeInstanceOf(CodecError);
          expect(Buffer.byteLength((error as CodecError).message)).toBeLessThanOrEqual(255);
        }
      }),
      { numRuns: 5000 },
    );
  });

  test("an unknown method is a 503 with its ids", () => {
    expect(replyOf(() => decodeMethod(Buffer.from("003c0063", "hex")))).toEqual([503, 60, 99]);
    expect(replyOf(() => decodeMethod(Buffer.from("ffffffff", "hex")))).toEqual([503, 65535, 65535]);
  });

  test("unused bits are ignored, as RabbitMQ does", () => {
    const qos = decodeMethod(Buffer.from("003c000a00000000000afe", "hex"));
    expect(qos).toEqual({ name: "basic.qos", fields: { prefetchSize: 0, prefetchCount: 10, global: false } });
  });

  test("text that is not UTF-8 is a 502", () => {
    expect(replyOf(() => decodeMethod(Buffer.from("0032000b02fffe0000000000000000", "hex")))).toEqual([502, 50, 11]);
  });

  test("reserved fields may be left out", () => {
    const publish = { exchange: "", routingKey: "q", mandatory: true, immediate: false };
    const decoded = decodeMethod(encodeMethod("basic.publish", publish));
    expect(decoded.fields).toEqual({ ...publish, ticket: 0 });
    expect(decodeMethod(encodeMethod("connection.open-ok", {})).fields).toEqual({ knownHosts: "" });
    expect(decodeMethod(encodeMethod("channel.open-ok", {})).fields).toEqual({ channelId: Buffer.alloc(0) });
  });

  test("what does not fit its type is a CodecError", () => {
    const tooLong = { consumerTag: "é".repeat(128) };
    expect(replyOf(() => encodeMethod("basic.consume-ok", tooLong))[0]).toBe(502);
    for (const prefetchCount of [-1, 65536, 1.5, Number.NaN]) {
      expect(replyOf(() => encodeMethod("basic.qos", { prefetchSize: 0, prefetchCount, global: false }))[0]).toBe(502);
    }
    for (const deliveryTag of [-1, -1n, 2n ** 64n, 2 ** 53, 0.5]) {
      expect(replyOf(() => encodeMethod("basic.ack", { deliveryTag, multiple: false }))[0]).toBe(502);
    }
  });

  test("a delivery tag is exact over all 64 bits, from bigint and from number", () => {
    for (const tag of [0n, 1n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n + 1n, 2n ** 64n - 1n]) {
      const payload = encodeMethod("basic.ack", { deliveryTag: tag, multiple: true });
      expect(decodeMethod(payload).fields).toEqual({ deliveryTag: tag, multiple: true });
      if (tag < 2n ** 53n)
        expect(encodeMethod("basic.ack", { deliveryTag: Number(tag), multiple: true })).toEqual(payload);
    }
  });
});
