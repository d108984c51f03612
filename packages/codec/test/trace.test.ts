// The tooling: a captured stream becomes entries, entries become lines.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  encodeProperties,
  type FieldTable,
  formatCommand,
  formatTable,
  fromPlain,
  methodFrame,
  readTrace,
  type TraceEntry,
  Writer,
} from "../src/index.ts";
import { cut, octets } from "./arbitraries.ts";

const HEADER = Buffer.from("AMQP\0\0\x09\x01", "latin1");

function captured(): Buffer {
  const writer = new Writer();
  const chunks: Uint8Array[] = [];
  writer.raw(HEADER);
  writer.methods(0, "connection.start-ok", {
    clientProperties: fromPlain({ product: "test", capabilities: { "basic.nack": true } }),
    mechanism: "PLAIN",
    response: "\0guest\0secret-word",
    locale: "en_US",
  });
  writer.methods(1, "queue.declare", {
    queue: "hello",
    passive: false,
    durable: true,
    exclusive: false,
    autoDelete: true,
    nowait: false,
    arguments: fromPlain({ "x-queue-type": "quorum", "x-text": "two words", list: [1, 2n ** 60n, null] }),
  });
  const publish = { exchange: "", routingKey: "hello", mandatory: false, immediate: false };
  const properties = encodeProperties({ contentType: "text/plain", headers: fromPlain({ a: 1 }), timestamp: 5n });
  writer.content(1, "basic.publish", publish, properties, Buffer.from("hi"), 4096);
  writer.heartbeat();
  writer.ack(2, 7, true);
  writer.flush({ write: (chunk) => chunks.push(chunk) > 0, cork: () => {}, uncork: () => {} });
  return Buffer.concat(chunks);
}

const LINES = [
  "client ch=0 protocol-header 0-0-9-1",
  'client ch=0 connection.start-ok client-properties={product=test, capabilities={basic.nack=true}} mechanism="PLAIN" response=<18 octets> locale="en_US"',
  'client ch=1 queue.declare queue="hello" durable auto-delete arguments={x-queue-type=quorum, x-text="two words", list=[1, 1152921504606846976, null]}',
  'client ch=1 basic.publish exchange="" routing-key="hello" | 2 B content-type=text/plain headers={a=1} timestamp=5',
  "client ch=0 heartbeat",
  "client ch=2 basic.ack delivery-tag=7 multiple",
];

const lines = (stream: Uint8Array | Iterable<Uint8Array>) =>
  [...readTrace(stream, { direction: "client" })].map(formatCommand);

describe("traces", () => {
  test("a stream reads as its commands, however it is cut, and without a credential", () => {
    const bytes = captured();
    expect(lines(bytes)).toEqual(LINES);
    for (let at = 1; at < bytes.length; at++) expect(lines(cut(bytes, [at]))).toEqual(LINES);
    expect(lines(bytes).join()).not.toContain("secret");
  });

  test("a stream may start at any frame, and without a direction", () => {
    const [entry] = readTrace(methodFrame(3, "basic.get", { queue: "q", noAck: true }));
    expect(entry).toEqual({
      kind: "method",
      channel: 3,
      method: { name: "basic.get", fields: { ticket: 0, queue: "q", noAck: true } },
    });
    expect(entry && formatCommand(entry)).toBe('ch=3 basic.get queue="q" no-ack');
  });

  test("reserved fields show where a peer filled them", () => {
    const [entry] = readTrace(methodFrame(0, "connection.open", { virtualHost: "/", capabilities: "x", insist: true }));
    expect(entry && formatCommand(entry)).toBe('ch=0 connection.open virtual-host="/" capabilities="x" insist');
  });

  test("an end inside a frame or a content is told", () => {
    const bytes = captured();
    const publish = bytes.indexOf("hi");
    expect(lines(bytes.subarray(0, publish + 1)).slice(-2)).toEqual([
      "client ch=1 truncated: content incomplete",
      "client ch=0 truncated: 8 octets of a frame",
    ]);
    expect(lines(HEADER.subarray(0, 5))).toEqual(["client ch=0 truncated: 5 octets of a frame"]);
    expect(lines([])).toEqual([]);
  });

  test("a channel's error ends its command only, a frame's error the trace", () => {
    const bad = Buffer.from("0100010000000400 3c00 63ce".replaceAll(" ", ""), "hex");
    const good = methodFrame(1, "tx.select", {});
    const noFrame = Buffer.from("HTTP/1.1 400 Bad Request");
    expect(lines(Buffer.concat([bad, good, noFrame, good]))).toEqual([
      "client ch=1 malformed: COMMAND_INVALID - unknown method 60.99",
      "client ch=1 tx.select",
      "client ch=0 malformed: FRAME_ERROR - unknown frame type 72",
    ]);
  });

  test("text that is not UTF-8 in a property is malformed, not an exception", () => {
    const writer = new Writer();
    const publish = { exchange: "", routingKey: "", mandatory: false, immediate: false };
    writer.content(1, "basic.publish", publish, Buffer.from("800001ff", "hex"), Buffer.alloc(0), 0);
    const chunks: Uint8Array[] = [];
    writer.flush({ write: (chunk) => chunks.push(chunk) > 0, cork: () => {}, uncork: () => {} });
    expect(lines(chunks)).toEqual(["client ch=1 malformed: SYNTAX_ERROR - malformed UTF-8 in shortstr"]);
  });

  test("law: any octets give entries that can be printed in one line each", () => {
    const spoilt = fc.tuple(fc.nat(), fc.nat(255)).map(([place, octet]) => {
      const bytes = captured();
      bytes[place % bytes.length] = octet;
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(octets(100), spoilt), fc.array(fc.nat(400), { maxLength: 8 }), (bytes, places) => {
        const entries: TraceEntry[] = [...readTrace(cut(bytes, places))];
        for (const entry of entries) expect(formatCommand(entry)).not.toContain("\n");
      }),
      { numRuns: 1000 },
    );
  });

  test("every kind of value has a form", () => {
    const table: FieldTable = [
      ["bytes", { type: "bytes", value: Buffer.from("hi") }],
      ["other", { type: "longstr", value: Buffer.of(0xff, 0) }],
      ["price", { type: "decimal", value: { scale: 2, unscaled: 314 } }],
      ["a b", { type: "double", value: 0.5 }],
      ["none", { type: "void", value: null }],
    ];
    expect(formatTable(table)).toBe('{bytes="hi", other=0xff00, price=314e-2, "a b"=0.5, none=null}');
  });
});
