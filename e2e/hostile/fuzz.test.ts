// Valid conversations with a few octets changed, dropped, doubled or cut, in pieces of any size: the gateway answers with
// a proper close or waits, hangs up in the end, and never breaks. Seeded: AMQP_FUZZ_SEED repeats one, AMQP_FUZZ_SECONDS
// makes it longer than CI's 15.
import { connect } from "node:net";
import {
  type ByteSink,
  encodeProperties,
  FrameDecoder,
  type FrameType,
  fromPlain,
  PROTOCOL_HEADER,
  Writer,
} from "@amqp/codec";
import * as fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { methodOf } from "../harness/socket.ts";
import { startCanary } from "./canary.ts";
import { residentMiB } from "./memory.ts";

const SECONDS = Number(process.env.AMQP_FUZZ_SECONDS ?? 15);
const SEED = Number(process.env.AMQP_FUZZ_SEED ?? 1326);

afterAll(releaseAll);

/** What a client says from the protocol header to the close. */
function conversation(): Buffer {
  const writer = new Writer();
  const chunks: Uint8Array[] = [];
  const sink: ByteSink = {
    write: (octets) => chunks.push(Buffer.from(octets)) > 0,
    cork: () => undefined,
    uncork: () => undefined,
  };
  const publish = (to: object, properties: Parameters<typeof encodeProperties>[0], body: Buffer): void => {
    const fields = { exchange: "", routingKey: "fuzz", mandatory: false, immediate: false, ...to };
    writer.content(1, "basic.publish", fields, encodeProperties(properties), body, 4_096);
    writer.flush(sink);
  };
  publish({}, { contentType: "text/plain", headers: fromPlain({ a: [1, "x", { b: true }] }) }, Buffer.alloc(9_000, 1));
  publish({ mandatory: true, routingKey: "nobody" }, { expiration: "100", replyTo: "r" }, Buffer.from("x"));
  return Buffer.concat([
    Buffer.from(PROTOCOL_HEADER),
    methodOf(0, "connection.start-ok", {
      clientProperties: fromPlain({
        product: "fuzz",
        capabilities: { "basic.nack": true, "connection.blocked": true },
      }),
      mechanism: "PLAIN",
      response: "\0guest\0guest",
      locale: "en_US",
    }),
    methodOf(0, "connection.tune-ok", { channelMax: 2047, frameMax: 4_096, heartbeat: 0 }),
    methodOf(0, "connection.open", { virtualHost: "/" }),
    methodOf(1, "channel.open", {}),
    methodOf(2, "channel.open", {}),
    methodOf(1, "confirm.select", {}),
    methodOf(1, "queue.declare", {
      queue: "fuzz",
      autoDelete: true,
      arguments: fromPlain({ "x-queue-type": "classic" }),
    }),
    methodOf(1, "exchange.declare", { exchange: "fuzz", type: "topic", autoDelete: true }),
    methodOf(1, "queue.bind", { queue: "fuzz", exchange: "fuzz", routingKey: "a.*" }),
    methodOf(1, "basic.qos", { prefetchCount: 5 }),
    methodOf(1, "basic.consume", { queue: "fuzz", consumerTag: "t" }),
    ...chunks,
    methodOf(2, "basic.get", { queue: "fuzz" }),
    methodOf(1, "basic.ack", { deliveryTag: 0n, multiple: true }),
    methodOf(1, "basic.cancel", { consumerTag: "t" }),
    methodOf(1, "queue.unbind", { queue: "fuzz", exchange: "fuzz", routingKey: "a.*" }),
    methodOf(1, "queue.purge", { queue: "fuzz" }),
    methodOf(2, "channel.close", { replyCode: 200 }),
    methodOf(0, "connection.close", { replyCode: 200 }),
  ]);
}

type Mutation = (octets: Buffer) => Buffer;

const place = fc.nat(1_000_000);
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(place, fc.nat(255)).map(
    ([where, value]): Mutation =>
      (octets) => {
        const changed = Buffer.from(octets);
        changed[where % changed.length] = value;
        return changed;
      },
  ),
  fc.tuple(place, fc.nat(7)).map(
    ([where, bit]): Mutation =>
      (octets) => {
        const changed = Buffer.from(octets);
        changed[where % changed.length] = (changed[where % changed.length] ?? 0) ^ (1 << bit);
        return changed;
      },
  ),
  fc.tuple(place, fc.integer({ min: 1, max: 40 })).map(
    ([where, length]): Mutation =>
      (octets) => {
        const start = where % octets.length;
        return Buffer.concat([octets.subarray(0, start), octets.subarray(start + length)]);
      },
  ),
  fc.tuple(place, fc.integer({ min: 1, max: 200 })).map(
    ([where, length]): Mutation =>
      (octets) => {
        const start = where % octets.length;
        return Buffer.concat([octets.subarray(0, start + length), octets.subarray(start)]);
      },
  ),
  fc.tuple(place, fc.uint8Array({ minLength: 1, maxLength: 30 })).map(
    ([where, noise]): Mutation =>
      (octets) => {
        const start = where % octets.length;
        return Buffer.concat([octets.subarray(0, start), noise, octets.subarray(start)]);
      },
  ),
  place.map(
    (where): Mutation =>
      (octets) =>
        octets.subarray(0, where % octets.length),
  ),
);

const attack = fc.record({
  mutations: fc.array(mutation, { minLength: 0, maxLength: 4 }),
  piece: fc.constantFrom(1_000_000, 1_000_000, 1_000, 97, 7),
  reset: fc.boolean(),
});

/** Writes it in pieces and hangs up; what came back must be frames, whole ones, but for the first header. */
async function run(port: number, octets: Buffer, piece: number, reset: boolean): Promise<Buffer> {
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  socket.on("error", () => undefined);
  const chunks: Buffer[] = [];
  let quiet: NodeJS.Timeout | undefined;
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const hangUp = (): void => {
    clearTimeout(quiet);
    quiet = setTimeout(() => (reset ? socket.resetAndDestroy() : socket.destroy()), 60);
  };
  socket.on("data", (chunk) => {
    chunks.push(chunk);
    hangUp();
  });
  for (let at = 0; at < octets.length; at += piece) socket.write(octets.subarray(at, at + piece));
  hangUp();
  await closed;
  clearTimeout(quiet);
  const said = Buffer.concat(chunks);
  if (said.subarray(0, 4).toString("latin1") === "AMQP") return said;
  const decoder = new FrameDecoder({ maxFrameSize: 0 });
  decoder.push(said, (_type: FrameType) => undefined);
  return said;
}

it(
  `survives ${SECONDS} s of damaged conversations`,
  async () => {
    const gateway = await startGateway();
    const canary = await startCanary({ host: "127.0.0.1", port: gateway.port });
    const valid = conversation();
    // Undamaged it is answered to its end: what is damaged below is worth damaging.
    const answer = await run(gateway.port, valid, 1_000_000, false);
    expect(answer.subarray(-12).equals(methodOf(0, "connection.close-ok", {}))).toBe(true);
    const before = residentMiB(gateway.pid);
    const end = Date.now() + SECONDS * 1_000;
    let attacks = 0;
    for (let round = 0; Date.now() < end; round++) {
      const drawn = fc.sample(attack, { seed: SEED + round, numRuns: 20 });
      await Promise.all(
        drawn.map(({ mutations, piece, reset }) =>
          run(
            gateway.port,
            mutations.reduce((octets, mutate) => mutate(octets), valid),
            piece,
            reset,
          ),
        ),
      );
      attacks += drawn.length;
    }
    const { rounds, slowest } = await canary.end();
    expect(attacks).toBeGreaterThan(100);
    expect(rounds).toBeGreaterThan(50);
    expect(slowest).toBeLessThan(5_000);
    expect(residentMiB(gateway.pid) - before).toBeLessThan(200);
    // A bug is answered with 541 and logged: there must be none.
    const bugs = gateway.lines.filter(({ level }) => level === "error" || level === "fatal");
    expect(bugs).toEqual([]);
    await gateway.stop();
  },
  SECONDS * 1_000 + 60_000,
);
