import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ClientWire } from "../../src/nats/client-wire.ts";
import { HandWire } from "../../src/nats/hand-wire.ts";
import { Splitter } from "../../src/nats/splitter.ts";
import { readHeader, readStatus } from "../../src/nats/status.ts";
import { type Wire, wireOf } from "../../src/nats/wire.ts";
import { standStill } from "../still.ts";
import { NatsServer, sleep, until } from "./harness.ts";

interface Seen {
  readonly subject: string;
  readonly reply: string;
  readonly head: string | undefined;
  readonly body: string;
  readonly weight: number;
}

const OURS = 7;
const word = fc.stringMatching(/^[a-zé$_.]{1,30}$/);
const payload = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.uint8Array({ minLength: 2_000, maxLength: 3_000 }),
  // What looks like a line is none inside a payload.
  fc.constant(new TextEncoder().encode("MSG a 7 5\r\nPING\r\n")),
);
const message = fc.record({
  sid: fc.constantFrom(1, OURS, 70),
  subject: word,
  reply: fc.option(word, { nil: "" }),
  head: fc.option(
    word.map((value) => `NATS/1.0\r\nA: ${value}\r\n\r\n`),
    { nil: undefined },
  ),
  body: payload,
});
type Message = typeof message extends fc.Arbitrary<infer M> ? M : never;
const line = fc.constantFrom("PING\r\n", "PONG\r\n", "+OK\r\n", '-ERR "no"\r\n', 'INFO {"a":"MSG x"}\r\n');
const stream = fc.array(fc.oneof({ weight: 4, arbitrary: message }, { weight: 1, arbitrary: line }), { maxLength: 30 });

function encode(one: Message | string): Buffer {
  if (typeof one === "string") return Buffer.from(one);
  const { sid, subject, reply, body } = one;
  const head = Buffer.from(one.head ?? "");
  const size = head.length + body.length;
  const sizes = one.head === undefined ? `${size}` : `${head.length} ${size}`;
  const op = one.head === undefined ? "MSG" : "HMSG";
  const words = [op, subject, `${sid}`, ...(reply === "" ? [] : [reply]), sizes];
  return Buffer.concat([Buffer.from(`${words.join(" ")}\r\n`), head, body, Buffer.from("\r\n")]);
}

function seenOf({ subject, reply, head, body }: Message): Seen {
  const octets = [subject, reply, head ?? ""].map((text) => Buffer.byteLength(text)).reduce((a, b) => a + b, 0);
  return { subject, reply, head, body: digest(body), weight: octets + body.length };
}

/** A large body as a line. */
function digest(octets: Uint8Array): string {
  return `${octets.length} ${createHash("sha1").update(octets).digest("hex")}`;
}

describe("the splitter", () => {
  it("law: in any partition the same messages, and the rest octet for octet, in their order", () => {
    fc.assert(
      fc.property(
        stream,
        fc.array(fc.integer({ min: 1, max: 4_000 }), { minLength: 1, maxLength: 20 }),
        (all, cuts) => {
          const octets = Buffer.concat(all.map(encode));
          const seen: (Seen | string)[] = [];
          const splitter = new Splitter({
            handlerOf: (sid) =>
              sid !== OURS
                ? undefined
                : ({ subject, reply, head, body, weight }) => {
                    seen.push({
                      subject,
                      reply,
                      head: head?.toString(),
                      body: digest(body),
                      weight,
                    });
                  },
            rest: (part) => seen.push(part.toString("hex")),
          });
          for (let at = 0, turn = 0; at < octets.length; turn++) {
            const next = at + (cuts[turn % cuts.length] as number);
            // A copy, as a socket's chunks are.
            splitter.push(Buffer.from(octets.subarray(at, next)));
            at = next;
          }
          const expected: (Seen | string)[] = all.map((one) =>
            typeof one !== "string" && one.sid === OURS ? seenOf(one) : encode(one).toString("hex"),
          );
          expect(joined(seen)).toEqual(joined(expected));
        },
      ),
      { numRuns: 300 },
    );
  });
});

/** Neighbouring parts of the rest as one: how they are cut is nobody's business. */
function joined(all: readonly (Seen | string)[]): (Seen | string)[] {
  const result: (Seen | string)[] = [];
  for (const one of all) {
    const last = result.at(-1);
    if (typeof one === "string" && typeof last === "string") result[result.length - 1] = last + one;
    else result.push(one);
  }
  return result;
}

describe("the status of an answer", () => {
  it("is read from the first line, with the headers behind it", () => {
    const head = Buffer.from("NATS/1.0 409 Message Size Exceeds MaxBytes\r\nNats-Pending-Messages: 12\r\n\r\n");
    expect(readStatus(head)).toEqual({ code: 409, description: "Message Size Exceeds MaxBytes" });
    expect(readHeader(head, "Nats-Pending-Messages")).toBe("12");
    expect(readHeader(head, "Nats-Pending-Bytes")).toBe("");
    expect(readStatus(Buffer.from("NATS/1.0 503\r\n\r\n"))).toEqual({ code: 503, description: "" });
    expect(readStatus(Buffer.from("NATS/1.0\r\nAmqp-Props: AAA=\r\n\r\n"))).toEqual({ code: 0, description: "" });
    expect(readStatus(undefined)).toEqual({ code: 0, description: "" });
  });
});

describe("both wires", () => {
  const ends: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  async function start(make: (connection: NatsConnection) => Wire): Promise<{
    server: NatsServer;
    connection: NatsConnection;
    wire: Wire;
  }> {
    const server = await NatsServer.start();
    ends.push(() => server.stop());
    const connection = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    ends.push(() => connection.close());
    return { server, connection, wire: make(connection) };
  }

  const kinds: readonly (readonly [string, (connection: NatsConnection) => Wire])[] = [
    ["by hand", (connection) => wireOf(connection)],
    ["through the client", (connection) => new ClientWire(connection)],
  ];

  it.each(kinds)("carry every octet, in order, in every size: %s", async (_, make) => {
    const { wire } = await start(make);
    const seen: Seen[] = [];
    const subscription = wire.subscribe(
      "there.*",
      ({ subject, reply, head, body, weight }) => {
        seen.push({ subject, reply, head: head?.toString(), body: digest(body), weight });
      },
      () => {},
    );
    const expected: Seen[] = [];
    const head = Buffer.from("NATS/1.0\r\nAmqp-Props: AAA=\r\n\r\n");
    for (const [number, length] of [0, 1, 100, 2_047, 2_048, 70_000, 1_000_000, 3, 200_000].entries()) {
      const octets = Buffer.alloc(length, number + 1);
      const body = [octets.subarray(0, length >> 1), octets.subarray(length >> 1)];
      const subject = `there.${number % 2 === 0 ? "x" : "schön"}`;
      wire.send({ subject, head, body, size: head.length + length }, "inbox.", number);
      wire.publish(subject, number % 2 === 0 ? "" : "back", octets);
      const whole = digest(octets);
      const names = Buffer.byteLength(subject);
      expected.push(
        {
          subject,
          reply: `inbox.${number}`,
          head: head.toString(),
          body: whole,
          weight: names + 7 + head.length + length,
        },
        {
          subject,
          reply: number % 2 === 0 ? "" : "back",
          head: undefined,
          body: whole,
          weight: names + (number % 2) * 4 + length,
        },
      );
    }
    await until(() => seen.length === expected.length, 10_000);
    expect(seen.map(({ weight, ...one }) => one)).toEqual(expected.map(({ weight, ...one }) => one));
    if (wire instanceof HandWire) expect(seen).toEqual(expected);
    await subscription.drain();
  });

  it.each(kinds)("hand on what is under way before a drain is over, and nothing after it: %s", async (_, make) => {
    const { wire } = await start(make);
    let came = 0;
    const subscription = wire.subscribe(
      "there",
      () => came++,
      () => {},
    );
    for (let i = 0; i < 1_000; i++) wire.publish("there", "", Buffer.from("x"));
    await subscription.drain();
    expect(came).toBe(1_000);
    wire.publish("there", "", Buffer.from("x"));
    await sleep(50);
    expect(came).toBe(1_000);
  });

  it.each(kinds)("refuse what the bus does not take, before it costs the connection: %s", async (_, make) => {
    const { wire, connection } = await start(make);
    const most = connection.info?.max_payload ?? 0;
    const head = Buffer.from("NATS/1.0\r\n\r\n");
    const body = [Buffer.alloc(most)];
    expect(() => wire.send({ subject: "a", head, body, size: most + head.length }, "i.", 1)).toThrow();
    expect(() => wire.send({ subject: "a b", head, body: [], size: head.length }, "i.", 1)).toThrow();
    await connection.flush();
    await connection.close();
    expect(() => wire.publish("a", "", Buffer.from("x"))).toThrow();
  });

  it("settles nothing of a turn in which the process stood still, unless what it decided stands, and goes on anew", async () => {
    const { connection, wire } = await start(wireOf);
    const seen: string[] = [];
    wire.subscribe(
      "there",
      ({ body }) => seen.push(Buffer.from(body).toString()),
      () => {},
    );
    const stands = [true, true, false];
    wire.stands = () => stands.shift() ?? true;
    for (const [still, text] of [
      [300, "held"],
      [20, "quick"],
      [300, "held again"],
    ] as const) {
      wire.settle("there", Buffer.from(text));
      standStill(still);
      await until(() => seen.includes(text), 5_000);
    }
    const back = (async () => {
      for await (const { type } of connection.status()) if (type === "reconnect") return;
    })();
    wire.settle("there", Buffer.from("void"));
    standStill(300);
    await back;
    wire.publish("there", "", Buffer.from("anew"));
    await until(() => seen.includes("anew"), 5_000);
    expect(seen).toEqual(["held", "quick", "held again", "anew"]);
    expect(stands).toEqual([]);
    // Nothing else needs to stand.
    wire.stands = () => false;
    wire.publish("there", "", Buffer.from("no settlement"));
    standStill(300);
    await until(() => seen.includes("no settlement"), 5_000);
  });

  it("keeps the order with what the client itself sends, and lives on through a restart of the server", async () => {
    const { server, connection, wire } = await start(wireOf);
    expect(wire).toBeInstanceOf(HandWire);
    expect(wireOf(connection)).toBe(wire);
    const mine: string[] = [];
    wire.subscribe(
      "mine",
      ({ body }) => mine.push(Buffer.from(body).toString()),
      () => {},
    );
    const theirs: string[] = [];
    connection.subscribe(">", {
      callback: (_, { data, subject }) => void theirs.push(`${subject} ${Buffer.from(data)}`),
    });
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 100; i++) {
        wire.publish("mine", "", Buffer.from(`${i}`));
        wire.flush();
        connection.publish("theirs", `${i}`);
      }
      await until(() => mine.length === 100 && theirs.filter((one) => one.startsWith("theirs")).length === 100, 5_000);
      expect(mine).toEqual([...Array(100).keys()].map(String));
      const expected = [...Array(100).keys()].flatMap((i) => [`mine ${i}`, `theirs ${i}`]);
      expect(theirs.filter((one) => !one.startsWith("_INBOX"))).toEqual(expected);
      mine.length = 0;
      theirs.length = 0;
      if (round === 2) break;
      const back = (async () => {
        for await (const { type } of connection.status()) if (type === "reconnect") return;
      })();
      await server.kill();
      // Written to nobody: dropped, not kept for the next server.
      wire.publish("mine", "", Buffer.from("lost"));
      await server.run();
      await back;
    }
  });
});
