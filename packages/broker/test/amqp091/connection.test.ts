// A connection and any octets: every partition of a handshake, garbage before and after it, limits.
import { encodeProperties, FrameType, frame, methodFrame } from "@amqp/codec";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HANDSHAKE, HEADER, Peer, quietVerbs } from "./rig.ts";

const OPENED = ["connection.start", "connection.tune", "connection.open-ok"];
const DECLARE = {
  ticket: 0,
  passive: false,
  durable: false,
  exclusive: false,
  autoDelete: false,
  nowait: false,
  arguments: [],
} as const;

function publish(channel: number, routingKey: string, body: Buffer, mandatory = false): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(60, 0);
  header.writeUInt32BE(body.length, 8);
  return Buffer.concat([
    methodFrame(channel, "basic.publish", { exchange: "", routingKey, mandatory, immediate: false }),
    frame(FrameType.HEADER, channel, Buffer.concat([header, encodeProperties({ deliveryMode: 2 })])),
    ...(body.length > 0 ? [frame(FrameType.BODY, channel, body)] : []),
  ]);
}

/** Splits octets at these places. */
function split(octets: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [...new Set(places.map((place) => place % octets.length))].sort((a, b) => a - b);
  return [0, ...cuts].map((from, i) => octets.subarray(from, cuts[i] ?? octets.length)).filter((c) => c.length > 0);
}

async function converse(chunks: readonly Buffer[], peer = new Peer()): Promise<Peer> {
  for (const chunk of chunks) peer.connection.receive(Buffer.from(chunk));
  await peer.settle();
  return peer;
}

describe("the handshake", () => {
  it("law: every cut in two, and any in more, gives the same conversation", async () => {
    const whole = Buffer.concat([
      HANDSHAKE,
      methodFrame(1, "channel.open", {}),
      methodFrame(1, "confirm.select", { nowait: false }),
      publish(1, "nowhere", Buffer.from("body"), true),
      methodFrame(1, "queue.declare", { ...DECLARE, queue: "q" }),
    ]);
    const first = await converse([whole]);
    expect(first.names).toEqual([
      ...OPENED,
      "channel.open-ok",
      "confirm.select-ok",
      "basic.return",
      "basic.ack",
      "queue.declare-ok",
    ]);
    for (let at = 1; at < whole.length; at++) {
      const peer = await converse([whole.subarray(0, at), whole.subarray(at)]);
      expect(peer.octets.equals(first.octets)).toBe(true);
      await peer.close();
    }
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 40 }), async (places) => {
        const peer = await converse(split(whole, places));
        expect(peer.octets.equals(first.octets)).toBe(true);
        await peer.close();
      }),
      { numRuns: 40 },
    );
    await first.close();
  });

  it("answers a foreign header with its own, and ends", async () => {
    for (const foreign of ["GET / HTTP/1.1\r\n\r\n", "AMQP\x03\x01\0\0", "AMQP\0\0\x09\x02", "\x16\x03\x01"]) {
      const peer = await converse([Buffer.from(foreign, "latin1")]);
      expect(peer.octets.equals(HEADER)).toBe(true);
      expect(peer.state).toBe("ended");
    }
  });

  it("refuses more octets before connection.open than the limit, with a reason", async () => {
    const heartbeats = Buffer.concat(new Array(3000).fill(frame(FrameType.HEARTBEAT, 0, Buffer.alloc(0))));
    const peer = await converse([HEADER, heartbeats]);
    expect(peer.names).toEqual(["connection.start", "connection.close"]);
    expect(peer.methods.at(-1)?.fields).toMatchObject({ replyCode: 506 });
    await peer.close();
  });

  it("is over after its time: with a reason once AMQP is spoken, else without", async () => {
    const speaking = new Peer(quietVerbs(), { handshake: 20 });
    speaking.connection.receive(HEADER);
    const mute = new Peer(quietVerbs(), { handshake: 20 });
    await new Promise((resolve) => setTimeout(resolve, 60));
    await speaking.settle();
    expect(speaking.names).toEqual(["connection.start", "connection.close"]);
    expect(mute.octets).toHaveLength(0);
    expect(mute.state).toBe("ended");
    await speaking.close();
  });

  it("opens no more connections than the limit", async () => {
    const limits = { connections: 1 };
    const first = await converse([HANDSHAKE], new Peer(quietVerbs(), limits));
    const second = await converse([HANDSHAKE], new Peer(quietVerbs(), limits, first));
    expect(first.names).toEqual(OPENED);
    expect(second.methods.at(-1)).toMatchObject({ name: "connection.close", fields: { replyCode: 530 } });
    await first.close();
    await second.close();
    const third = await converse([HANDSHAKE], new Peer(quietVerbs(), limits, first));
    expect(third.names).toEqual(OPENED);
    await third.close();
  });
});

describe("any octets", () => {
  const bytes = fc.uint8Array({ maxLength: 300 });

  it("law: after any garbage the connection ends with connection.close or waits; nothing is thrown, nothing is a bug", async () => {
    const prefixes = [
      Buffer.alloc(0),
      HEADER,
      HANDSHAKE,
      Buffer.concat([HANDSHAKE, methodFrame(1, "channel.open", {})]),
    ];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...prefixes), fc.array(bytes, { maxLength: 5 }), async (prefix, garbage) => {
        const peer = await converse([
          ...(prefix.length > 0 ? [prefix] : []),
          ...garbage.map((one) => Buffer.from(one)),
        ]);
        expect(peer.errors).toEqual([]);
        if (prefix.length > 0) {
          const names = peer.names;
          const closes = names.filter((name) => name === "connection.close").length;
          expect(closes).toBeLessThanOrEqual(1);
          if (closes === 1) expect(names.at(-1)).toBe("connection.close");
        }
        await peer.close();
      }),
      { numRuns: 300 },
    );
  });

  it("law: the same for well-formed frames with any payload, on any channel", async () => {
    const frames = fc.array(
      fc.tuple(
        fc.constantFrom(FrameType.METHOD, FrameType.HEADER, FrameType.BODY, FrameType.HEARTBEAT),
        fc.nat(2),
        fc.oneof(
          bytes,
          fc
            .tuple(fc.constantFrom(10, 20, 30, 40, 50, 60, 85, 90), fc.nat(120), bytes)
            .map(([c, m, rest]) => Uint8Array.from([0, c, 0, m, ...rest])),
        ),
      ),
      { maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(frames, async (sent) => {
        const open = Buffer.concat([HANDSHAKE, methodFrame(1, "channel.open", {})]);
        const peer = await converse([open, ...sent.map(([type, channel, payload]) => frame(type, channel, payload))]);
        expect(peer.errors).toEqual([]);
        await peer.close();
      }),
      { numRuns: 300 },
    );
  });

  it("answers the close-ok of a peer even after the stream was lost", async () => {
    const peer = await converse([HANDSHAKE, Buffer.from([9, 9, 9, 9, 9, 9, 9, 9, 9])]);
    expect(peer.methods.at(-1)).toMatchObject({ name: "connection.close", fields: { replyCode: 501 } });
    expect(peer.state).toBe("open");
    peer.connection.receive(methodFrame(0, "connection.close-ok", {}));
    expect(peer.state).toBe("ended");
  });
});

describe("limits", () => {
  it("refuses a body above the bus's limit on its header, skips its frames, and goes on on another channel", async () => {
    const header = Buffer.alloc(14);
    header.writeUInt16BE(60, 0);
    header.writeUInt32BE(2 * 1024 * 1024, 8);
    const peer = await converse([
      HANDSHAKE,
      methodFrame(1, "channel.open", {}),
      methodFrame(1, "basic.publish", { exchange: "", routingKey: "q", mandatory: false, immediate: false }),
      frame(FrameType.HEADER, 1, header),
      frame(FrameType.BODY, 1, Buffer.alloc(1000)),
      methodFrame(2, "channel.open", {}),
    ]);
    expect(peer.names).toEqual([...OPENED, "channel.open-ok", "channel.close", "channel.open-ok"]);
    expect(peer.methods[4]?.fields).toMatchObject({ replyCode: 311, classId: 60, methodId: 40 });
    await peer.close();
  });

  it("refuses bodies announced on many channels beyond its limit before they come", async () => {
    const peer = new Peer(quietVerbs(), { assembling: 3 * 1024 * 1024 });
    const header = Buffer.alloc(14);
    header.writeUInt16BE(60, 0);
    header.writeUInt32BE(1024 * 1000, 8);
    const chunks: Buffer[] = [HANDSHAKE];
    for (let channel = 1; channel <= 5; channel++) {
      chunks.push(
        methodFrame(channel, "channel.open", {}),
        methodFrame(channel, "basic.publish", { exchange: "", routingKey: "q", mandatory: false, immediate: false }),
        frame(FrameType.HEADER, channel, header),
      );
    }
    await converse(chunks, peer);
    expect(peer.methods.at(-1)).toMatchObject({ name: "connection.close", fields: { replyCode: 506 } });
    await peer.close();
  });

  it("pauses the socket while too many commands wait, and reads on when they are done", async () => {
    let release = (): void => undefined;
    const waits = new Promise<void>((resolve) => {
      release = resolve;
    });
    const verbs = {
      ...quietVerbs(),
      declareQueue: async () => {
        await waits;
        return { name: "q", messages: 0, consumers: 0 };
      },
    };
    const peer = new Peer(verbs, { laneCommands: 10 });
    const declares = new Array(20).fill(methodFrame(1, "queue.declare", { ...DECLARE, queue: "q" }));
    await converse([HANDSHAKE, methodFrame(1, "channel.open", {}), ...declares], peer);
    expect(peer.paused).toBe(true);
    release();
    for (let i = 0; i < 20; i++) await peer.settle();
    expect(peer.paused).toBe(false);
    expect(peer.names.filter((name) => name === "queue.declare-ok")).toHaveLength(20);
    await peer.close();
  });

  it("does nothing more for a peer that does not read, and goes on when it does", async () => {
    const peer = new Peer(quietVerbs(), { unsent: 1000 });
    await converse([HANDSHAKE, methodFrame(1, "channel.open", {})], peer);
    peer.bufferedOctets = 5000;
    const before = peer.names.length;
    await converse([methodFrame(1, "confirm.select", { nowait: false })], peer);
    expect(peer.paused).toBe(true);
    expect(peer.names).toHaveLength(before);
    peer.bufferedOctets = 0;
    peer.connection.drained();
    await peer.settle();
    expect(peer.paused).toBe(false);
    expect(peer.names.at(-1)).toBe("confirm.select-ok");
    await peer.close();
  });

  it("answers what throws in a handler with 541 and logs it", async () => {
    const verbs = {
      ...quietVerbs(),
      declareQueue: async () => {
        throw new TypeError("a bug");
      },
    };
    const peer = new Peer(verbs);
    await converse(
      [HANDSHAKE, methodFrame(1, "channel.open", {}), methodFrame(1, "queue.declare", { ...DECLARE, queue: "q" })],
      peer,
    );
    expect(peer.methods.at(-1)).toMatchObject({
      name: "connection.close",
      fields: { replyCode: 541, classId: 50, methodId: 10 },
    });
    expect(peer.errors).toHaveLength(1);
    await peer.close();
  });
});
