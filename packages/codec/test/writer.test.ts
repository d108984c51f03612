// The writer: the octets of amqplib and of the engine, frames cut at the frame-max, and slabs never written again.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Assembled,
  CodecError,
  CommandAssembler,
  encodeProperties,
  encodeShortstr,
  FRAME_MIN_SIZE,
  FrameDecoder,
  FrameType,
  type MethodName,
  methodFrame,
  NO_PROPERTIES,
  truncateShortstr,
  Writer,
} from "../src/index.ts";
import { definitions } from "./amqplib.ts";
import { octets, properties, shortstr } from "./arbitraries.ts";

/** A sink that keeps what it is given, and a copy of it as it was then. */
class Sink {
  readonly chunks: Uint8Array[] = [];
  readonly copies: Buffer[] = [];
  readonly calls: string[] = [];
  more = true;

  write(chunk: Uint8Array): boolean {
    this.chunks.push(chunk);
    this.copies.push(Buffer.from(chunk));
    this.calls.push("write");
    return this.more;
  }
  cork(): void {
    this.calls.push("cork");
  }
  uncork(): void {
    this.calls.push("uncork");
  }
  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }
}

function written(write: (writer: Writer) => void): Buffer {
  const [writer, sink] = [new Writer(), new Sink()];
  write(writer);
  const pending = writer.bytesPending;
  writer.flush(sink);
  expect(sink.bytes).toHaveLength(pending);
  expect(writer.bytesPending).toBe(0);
  return sink.bytes;
}

/** What the octets are to a receiver of that frame-max: commands, and the sizes of their body frames. */
function received(bytes: Buffer, maxFrameSize = 0): { commands: Assembled[]; bodyFrames: number[] } {
  const assembler = new CommandAssembler();
  const commands: Assembled[] = [];
  const bodyFrames: number[] = [];
  new FrameDecoder({ maxFrameSize }).push(bytes, (type, _channel, payload) => {
    if (type === FrameType.BODY) bodyFrames.push(payload.length);
    const result = assembler.process(type, payload);
    if (result.kind === "command" || result.kind === "error") commands.push(result);
  });
  expect(assembler.idle).toBe(true);
  return { commands, bodyFrames };
}

const tag = fc.oneof(fc.nat(100), fc.maxSafeNat());
const channel = fc.nat(0xffff);

describe("the fast paths write what the engine writes", () => {
  test("law: deliver, with texts and with encoded ones, in every size of frame and any pieces", () => {
    const frameMax = fc.constantFrom(0, 24, 64, FRAME_MIN_SIZE, 131_072);
    const pieces = fc.array(
      fc.oneof(
        octets(20),
        fc.integer({ min: 1, max: 7000 }).map((n) => Buffer.alloc(n, n)),
      ),
      {
        maxLength: 4,
      },
    );
    fc.assert(
      fc.property(
        fc.record({ consumerTag: shortstr, exchange: shortstr, routingKey: shortstr }),
        tag,
        fc.boolean(),
        properties.map(encodeProperties),
        pieces,
        frameMax,
        (names, deliveryTag, redelivered, props, body, max) => {
          const whole = Buffer.concat(body);
          const { consumerTag: c, exchange: e, routingKey: r } = names;
          const ours = written((writer) => writer.deliver(5, c, deliveryTag, redelivered, e, r, props, body, max));
          const [c8, e8, r8] = [encodeShortstr(c), encodeShortstr(e), encodeShortstr(r)];
          expect(written((w) => w.deliver(5, c8, deliveryTag, redelivered, e8, r8, props, whole, max))).toEqual(ours);
          const fields = { ...names, deliveryTag, redelivered };
          expect(written((w) => w.content(5, "basic.deliver", fields, props, whole, max))).toEqual(ours);

          // Header frames are not cut: properties that are too large for the frame-max are the caller's business.
          const { commands, bodyFrames } = received(ours);
          expect(commands).toMatchObject([
            { kind: "command", method: { fields: { ...fields, deliveryTag: BigInt(deliveryTag) } } },
          ]);
          const [command] = commands;
          if (command?.kind !== "command" || command.body === undefined) throw new Error("no content");
          expect(Buffer.concat(command.body)).toEqual(whole);
          expect(command.properties).toEqual(props);
          const room = max === 0 ? whole.length : max - 8;
          const full = whole.length === 0 ? 0 : Math.ceil(whole.length / room);
          expect(bodyFrames).toHaveLength(full);
          expect(bodyFrames.slice(0, -1).every((size) => size === room)).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("law: ack and nack", () => {
    fc.assert(
      fc.property(channel, tag, fc.boolean(), fc.boolean(), (ch, deliveryTag, multiple, requeue) => {
        expect(written((w) => w.ack(ch, deliveryTag, multiple))).toEqual(
          methodFrame(ch, "basic.ack", { deliveryTag, multiple }),
        );
        expect(written((w) => w.nack(ch, deliveryTag, multiple, requeue))).toEqual(
          methodFrame(ch, "basic.nack", { deliveryTag, multiple, requeue }),
        );
      }),
    );
  });

  test("get-ok and return", () => {
    const props = encodeProperties({ deliveryMode: 2 });
    const get = received(written((w) => w.getOk(1, 7, true, "e", "k", 3, props, Buffer.from("hi"), 4096)));
    expect(get.commands).toMatchObject([
      {
        method: {
          name: "basic.get-ok",
          fields: { deliveryTag: 7n, redelivered: true, exchange: "e", routingKey: "k", messageCount: 3 },
        },
        properties: props,
        body: [Buffer.from("hi")],
      },
    ]);
    const back = received(written((w) => w.return(1, 312, "NO_ROUTE", "e", "k", props, [], 4096)));
    expect(back.commands).toMatchObject([
      {
        method: {
          name: "basic.return",
          fields: { replyCode: 312, replyText: "NO_ROUTE", exchange: "e", routingKey: "k" },
        },
        properties: props,
        bodySize: 0,
      },
    ]);
    expect(back.bodyFrames).toEqual([]);
  });

  test("amqplib writes the same deliver and header", () => {
    const fields = { consumerTag: "ctag", deliveryTag: 2 ** 40 + 1, redelivered: true, exchange: "é", routingKey: "k" };
    const ours = written((w) => w.deliver(9, "ctag", 2 ** 40 + 1, true, "é", "k", NO_PROPERTIES, Buffer.alloc(0), 0));
    const theirs = [definitions.encodeMethod((60 << 16) | 60, 9, fields), definitions.encodeProperties(60, 9, 0, {})];
    expect(ours).toEqual(Buffer.concat(theirs));
  });

  test("heartbeat and raw", () => {
    expect(written((w) => w.heartbeat())).toEqual(Buffer.of(8, 0, 0, 0, 0, 0, 0, 206));
    expect(written((w) => w.raw(Buffer.from("AMQP\0\0\x09\x01", "latin1")))).toHaveLength(8);
    expect(written((w) => w.raw(Buffer.alloc(5000)))).toHaveLength(5000);
  });
});

describe("slabs", () => {
  test("law: frames leave in the order of the calls, whole, and no chunk changes after it was handed over", () => {
    const act = fc.oneof(
      fc.record({ kind: fc.constant("ack" as const), tag }),
      fc.record({ kind: fc.constant("deliver" as const), size: fc.oneof(fc.nat(300), fc.nat(10_000)) }),
      fc.record({ kind: fc.constant("open-ok" as const) }),
      fc.record({ kind: fc.constant("flush" as const) }),
    );
    fc.assert(
      fc.property(fc.array(act, { maxLength: 120 }), (acts) => {
        const [writer, sink] = [new Writer(), new Sink()];
        const expected: MethodName[] = [];
        for (const one of acts) {
          if (one.kind === "flush") writer.flush(sink);
          else if (one.kind === "ack") writer.ack(1, one.tag, false);
          else if (one.kind === "open-ok") writer.methods(1, "connection.open-ok", {});
          else writer.deliver(1, "c", 1, false, "e", "r", NO_PROPERTIES, Buffer.alloc(one.size, 7), 4096);
          if (one.kind !== "flush") expected.push(one.kind === "open-ok" ? "connection.open-ok" : `basic.${one.kind}`);
        }
        writer.flush(sink);
        const { commands } = received(sink.bytes, 4096);
        expect(commands.map((command) => command.kind === "command" && command.method.name)).toEqual(expected);
        sink.chunks.forEach((chunk, i) => {
          expect(Buffer.compare(chunk, sink.copies[i] as Buffer)).toBe(0);
        });
      }),
      { numRuns: 200 },
    );
  });

  test("many small frames of one turn are one write; a body of 2 KiB goes by reference, corked", () => {
    const [writer, sink] = [new Writer(), new Sink()];
    for (let i = 0; i < 10; i++) writer.ack(1, i, false);
    expect(writer.bytesPending).toBe(210);
    writer.flush(sink);
    expect(sink.calls).toEqual(["write"]);
    writer.flush(sink);
    expect(sink.calls).toEqual(["write"]);

    const body = Buffer.alloc(2048);
    writer.deliver(1, "c", 1, false, "", "q", NO_PROPERTIES, body, 4096);
    writer.flush(sink);
    expect(sink.calls.slice(1)).toEqual(["cork", "write", "write", "write", "uncork"]);
    expect(sink.chunks).toContain(body);

    writer.deliver(1, "c", 1, false, "", "q", NO_PROPERTIES, Buffer.alloc(2047), 4096);
    writer.flush(sink);
    expect(sink.calls.at(-1)).toBe("write");
  });

  test("flush says whether the sink wants to drain", () => {
    const [writer, sink] = [new Writer(), new Sink()];
    sink.more = false;
    expect(writer.flush(sink)).toBe(true);
    writer.heartbeat();
    expect(writer.flush(sink)).toBe(false);
  });

  test("a call that throws has written nothing", () => {
    const [writer, sink] = [new Writer(), new Sink()];
    writer.ack(1, 1, false);
    const long = "x".repeat(256);
    const none = Buffer.alloc(0);
    expect(() => writer.deliver(1, "c", 1, false, "e", long, NO_PROPERTIES, none, 0)).toThrow(CodecError);
    expect(() => writer.return(1, 312, long, "e", "r", NO_PROPERTIES, none, 0)).toThrow(CodecError);
    expect(() => writer.methods(1, "basic.consume-ok", { consumerTag: long })).toThrow(CodecError);
    writer.ack(1, 2, false);
    writer.flush(sink);
    expect(received(sink.bytes).commands).toHaveLength(2);
  });
});

describe("short strings", () => {
  test("law: a truncated text fits, is a prefix, and lacks at most one character of what would fit", () => {
    const long = fc.string({ unit: "binary", minLength: 60, maxLength: 400 });
    fc.assert(
      fc.property(long, (text) => {
        const cut = truncateShortstr(text);
        const length = Buffer.byteLength(cut);
        expect(length).toBeLessThanOrEqual(255);
        expect(Buffer.from(text).subarray(0, length)).toEqual(Buffer.from(cut));
        if (length < Buffer.byteLength(text)) expect(length).toBeGreaterThan(255 - 4);
        else expect(cut).toBe(text);
      }),
    );
  });

  test("encodeShortstr refuses what does not fit", () => {
    expect(encodeShortstr("é")).toEqual(Buffer.of(2, 0xc3, 0xa9));
    expect(encodeShortstr("x".repeat(255))).toHaveLength(256);
    expect(() => encodeShortstr("é".repeat(128))).toThrow(CodecError);
  });
});
