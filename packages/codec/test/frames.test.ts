// The frame decoder is fed every partition; what is malformed is refused before its memory is spent.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CodecError,
  encodeProperties,
  FRAME_MIN_SIZE,
  FrameDecoder,
  FrameType,
  frame,
  METHODS,
  methodFrame,
  parseProtocolHeader,
} from "../src/index.ts";
import { cut, octets } from "./arbitraries.ts";

type Frame = [type: number, channel: number, payload: Buffer];

function decode(chunks: readonly Buffer[], maxFrameSize = 0): Frame[] {
  const decoder = new FrameDecoder({ maxFrameSize });
  const frames: Frame[] = [];
  for (const chunk of chunks) decoder.push(chunk, (...taken) => frames.push(taken));
  expect(decoder.bytesHeld).toBe(0);
  return frames;
}

const anyFrame: fc.Arbitrary<Frame> = fc.tuple(
  fc.constantFrom(...Object.values(FrameType)),
  fc.nat(0xffff),
  fc.oneof({ weight: 5, arbitrary: octets(40) }, { weight: 1, arbitrary: octets(5000) }),
);
const encode = (frames: readonly Frame[]) =>
  Buffer.concat(frames.map(([type, channel, payload]) => frame(type as FrameType, channel, payload)));

describe("FrameDecoder", () => {
  const small: Frame[] = [
    [FrameType.METHOD, 1, methodFrame(1, "channel.close-ok", {}).subarray(7, -1)],
    [FrameType.HEADER, 0xffff, Buffer.from("003c000000000000000000030000", "hex")],
    [FrameType.BODY, 256, Buffer.from("abc")],
    [FrameType.HEARTBEAT, 0, Buffer.alloc(0)],
    [FrameType.BODY, 1, Buffer.alloc(0)],
  ];

  test("every pair of cuts of a small trace gives the same frames", () => {
    const bytes = encode(small);
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        expect(decode(cut(bytes, [first, second]))).toEqual(small);
      }
    }
  });

  test("octet by octet", () => {
    const bytes = encode(small);
    expect(decode(Array.from(bytes, (octet) => Buffer.of(octet)))).toEqual(small);
  });

  test("law: any frames, cut anyhow, come out as they went in", () => {
    fc.assert(
      fc.property(
        fc.array(anyFrame, { maxLength: 12 }),
        fc.array(fc.nat(30_000), { maxLength: 60 }),
        (frames, places) => {
          expect(decode(cut(encode(frames), places))).toEqual(frames);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("a payload inside one chunk is a view on it, and one across chunks is never written again", () => {
    const bytes = encode(small);
    const [first] = decode([bytes]);
    expect(first?.[2].buffer).toBe(bytes.buffer);

    const twice = encode([
      [FrameType.BODY, 1, Buffer.alloc(50, 1)],
      [FrameType.BODY, 1, Buffer.alloc(50, 2)],
    ]);
    const [one, two] = decode(cut(twice, [20, 70]));
    expect(one?.[2]).toEqual(Buffer.alloc(50, 1));
    expect(two?.[2]).toEqual(Buffer.alloc(50, 2));
  });

  test("a frame of the agreed size passes, one octet more is a 501 on its header", () => {
    const largest = frame(FrameType.BODY, 1, Buffer.alloc(FRAME_MIN_SIZE - 8));
    expect(decode([largest], FRAME_MIN_SIZE)).toHaveLength(1);
    const header = frame(FrameType.BODY, 1, Buffer.alloc(FRAME_MIN_SIZE - 7)).subarray(0, 7);
    const text = "FRAME_ERROR - a frame of 4097 octets where 4096 are agreed";
    for (const at of [0, 1, 3, 6]) expect(() => decode(cut(header, [at]), FRAME_MIN_SIZE)).toThrow(text);
  });

  test("a frame of 2^31 and of 2^32-1 octets is refused on its header, and costs nothing without a limit", () => {
    for (const size of ["80000000", "ffffffff"]) {
      const header = Buffer.from(`030001${size}`, "hex");
      expect(() => decode([header], 131_072)).toThrow(/^FRAME_ERROR - a frame of \d+ octets where 131072 are agreed$/);
      const decoder = new FrameDecoder({ maxFrameSize: 0 });
      const before = process.memoryUsage().arrayBuffers;
      for (const chunk of [header, Buffer.alloc(100), Buffer.alloc(1000)]) decoder.push(chunk, () => expect.fail());
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000);
      expect(decoder.bytesHeld).toBe(1107);
    }
  });

  test("a limit set while frames are taken holds from the next frame on", () => {
    const decoder = new FrameDecoder({ maxFrameSize: 20 });
    const large = frame(FrameType.BODY, 1, Buffer.alloc(100));
    let taken = 0;
    decoder.push(Buffer.concat([frame(FrameType.BODY, 1, Buffer.alloc(1)), large]), () => {
      taken++;
      decoder.maxFrameSize = 200;
    });
    expect(taken).toBe(2);
    expect(decoder.maxFrameSize).toBe(200);
    decoder.maxFrameSize = 107;
    expect(() => decoder.push(large, () => expect.fail())).toThrow(CodecError);
  });

  test.each([0, 4, 5, 7, 9, 65, 206, 255])("type %d is a 501", (type) => {
    const bytes = Buffer.from([type, 0, 1, 0, 0, 0, 0, 206]);
    for (const at of [0, 1, 7])
      expect(() => decode(cut(bytes, [at]))).toThrow(`FRAME_ERROR - unknown frame type ${type}`);
  });

  test("a wrong frame end is a 501, after the frames before it", () => {
    const bytes = encode(small);
    bytes[bytes.length - 1] = 0;
    for (const at of [0, 5, bytes.length - 9, bytes.length - 1]) {
      const decoder = new FrameDecoder({ maxFrameSize: 0 });
      let taken = 0;
      const act = () => {
        for (const chunk of cut(bytes, [at])) decoder.push(chunk, () => taken++);
      };
      expect(act).toThrow("FRAME_ERROR - a frame ends with octet 0, not 206");
      expect(taken).toBe(small.length - 1);
    }
  });

  test("law: any octets, cut anyhow, give frames or a CodecError, and the same for each cut", () => {
    const noisy = fc.oneof(
      octets(200),
      fc.tuple(fc.array(anyFrame, { maxLength: 4 }), fc.nat(), fc.nat(255)).map(([frames, place, octet]) => {
        const bytes = encode(frames);
        if (bytes.length > 0) bytes[place % bytes.length] = octet;
        return bytes;
      }),
    );
    fc.assert(
      fc.property(noisy, fc.array(fc.nat(400), { maxLength: 20 }), (bytes, places) => {
        expect(outcome(cut(bytes, places))).toEqual(outcome([bytes]));
      }),
      { numRuns: 1000 },
    );
  });
});

function outcome(chunks: readonly Buffer[]): { frames: Frame[]; held: number; error: string | undefined } {
  const decoder = new FrameDecoder({ maxFrameSize: 4096 });
  const frames: Frame[] = [];
  try {
    for (const chunk of chunks) decoder.push(chunk, (...taken) => frames.push(taken));
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return { frames, held: 0, error: error.message };
  }
  // A frame in one chunk is held until the next chunk only where it is incomplete.
  return { frames, held: decoder.bytesHeld, error: undefined };
}

describe("parseProtocolHeader", () => {
  const header = Buffer.from("AMQP\0\0\x09\x01", "latin1");

  test("need-more until the eighth octet, then ok, whatever follows", () => {
    for (let length = 0; length < 8; length++)
      expect(parseProtocolHeader(header.subarray(0, length))).toBe("need-more");
    expect(parseProtocolHeader(header)).toBe("ok");
    expect(parseProtocolHeader(Buffer.concat([header, Buffer.of(1)]))).toBe("ok");
  });

  test("foreign as soon as an octet differs", () => {
    for (let place = 0; place < 8; place++) {
      const other = Buffer.from(header);
      other[place] = (other[place] ?? 0) ^ 1;
      expect(parseProtocolHeader(other.subarray(0, place + 1))).toBe("foreign");
    }
    expect(parseProtocolHeader(Buffer.from("GET / HTTP/1.1"))).toBe("foreign");
    expect(parseProtocolHeader(Buffer.from("AMQP\x03\x01\0\0", "latin1"))).toBe("foreign");
  });
});

test("frame and methodFrame agree", () => {
  const { classId, methodId } = METHODS["channel.close-ok"];
  const payload = Buffer.of(0, classId, 0, methodId);
  expect(methodFrame(7, "channel.close-ok", {})).toEqual(frame(FrameType.METHOD, 7, payload));
  expect(encodeProperties({})).toHaveLength(2);
});
