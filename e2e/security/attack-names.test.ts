// A tenant who writes into every field of AMQP what could reach beyond his own: other tenants' names, NATS's wildcards
// and its own subjects, lines of its protocol. Nothing of it appears on the bus outside his own namespace, and what
// another tenant has stays as it was, octet for octet. issue 4, part 5.
import { fromPlain } from "@amqp/codec";
import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  AUDIENCE,
  ISSUER,
  KeyServer,
  now,
  type Signing,
  signing,
  token,
} from "../../packages/broker/test/auth/issuer.ts";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { type NatsServer, startNats } from "../harness/nats-server.ts";
import { releaseAll } from "../harness/owned.ts";
import { AmqpSocket, methodOf } from "../harness/socket.ts";

const SECONDS = Number(process.env.AMQP_ATTACK_SECONDS ?? 15);
const SEED = Number(process.env.AMQP_FUZZ_SEED ?? 1326);
/** In every body that the attacker sends. */
const MARK = "attacker-was-here";

let nats: NatsServer;
let bus: NatsConnection;
let key: Signing;
let keys: KeyServer;
let gateway: Gateway;
let at: { host: string; port: number };
/** All that ever was published with the mark: a native subscriber to everything sees it. */
const seen: string[] = [];

const as = async (org: string): Promise<{ response: string }> => ({
  response: `\0\0${await token(key, { org, exp: now() + 3600 })}`,
});

beforeAll(async () => {
  nats = await startNats();
  bus = await connect({ servers: nats.url });
  key = await signing("one");
  keys = await KeyServer.start(key.jwk);
  gateway = await startGateway({
    env: {
      NATS_URL: nats.url,
      AMQP_AUTH: "jwt",
      AMQP_JWT_JWKS: keys.url,
      AMQP_JWT_ISSUER: ISSUER,
      AMQP_JWT_AUDIENCE: AUDIENCE,
    },
  });
  at = { host: "127.0.0.1", port: gateway.port };
  const spy = (_: Error | null, message: Msg): void => {
    if (message.string().includes(MARK)) seen.push(message.subject);
  };
  bus.subscribe(">", { callback: spy });
  await bus.flush();
  const victim = await AmqpSocket.open(at, await as("other"));
  await victim.channel(1);
  victim.send(1, "exchange.declare", { exchange: "vault", type: "topic", durable: true });
  await victim.expect("exchange.declare-ok");
  victim.send(1, "queue.declare", { queue: "secret", durable: true });
  await victim.expect("queue.declare-ok");
  victim.send(1, "queue.bind", { queue: "secret", exchange: "vault", routingKey: "#" });
  await victim.expect("queue.bind-ok");
  victim.send(1, "confirm.select", {});
  await victim.expect("confirm.select-ok");
  for (let number = 0; number < 3; number++) {
    victim.publish(1, { exchange: "vault", routingKey: "gold" }, `ingot ${number}`, { deliveryMode: 2 });
    await victim.expect("basic.ack");
  }
  victim.destroy();
});
afterAll(async () => {
  await bus?.close();
  await keys?.stop();
  await releaseAll();
});

/** What the other tenant has on the bus, as the bus tells it. */
async function treasure(): Promise<unknown> {
  const manager = await jetstreamManager(bus);
  const stream = await manager.streams.info("AMQP", { subjects_filter: "amqp.@other.>" });
  const consumer = await manager.consumers.info("AMQP", "other@secret");
  const bucket = await new Kvm(bus).open("amqp");
  const entries: unknown[] = [];
  for await (const name of await bucket.keys("o.other.>")) {
    if (!/^o\.other\.(x|q|b)\./.test(name)) continue;
    const entry = await bucket.get(name);
    entries.push([name, entry?.revision, entry?.string()]);
  }
  return {
    subjects: stream.state.subjects,
    config: { ...stream.config },
    consumer: { config: consumer.config, pending: consumer.num_pending, held: consumer.num_ack_pending },
    entries: entries.sort(),
  };
}

const CRAFTED = [
  ...[".", "..", "a.b", "*", ">", "a.>", "#", "*.#", "@other", "@other.secret", "other@secret", "acme@secret"],
  ...["amqp.@other._.secret", "amqp.>", "../other", "..%2Fother", "%2F", "%40other", "secret", "vault", "_", "@"],
  ...["a\r\nPUB amqp.@other._.secret 3\r\nabc", "a\nb", "a\0b", " ", "a b", "\t", "\u00a0", "\u2028", "\ufeff", "é"],
  ...["$JS.API.STREAM.DELETE.AMQP", "$JS.API.STREAM.PURGE.AMQP", "$JS.API.CONSUMER.DELETE.AMQP.other@secret"],
  ...["$KV.amqp.o.other.q.secret", "$KV.amqp.q.secret", "$SYS.REQ.SERVER.PING", "$SYS", "_INBOX.>", "o.other.q.secret"],
  ...[
    "q.secret",
    "x".repeat(255),
    ">".repeat(255),
    "é".repeat(127),
    ".".repeat(255),
    "amq.rabbitmq.reply-to",
    "amq.gen-x",
  ],
];

/** Each writes the word into one field, or several, of one command. */
const FIELDS: readonly ((word: string) => Buffer | readonly Buffer[])[] = [
  (queue) => methodOf(1, "queue.declare", { queue, durable: true }),
  (queue) => methodOf(1, "queue.declare", { queue, passive: true }),
  (queue) => methodOf(1, "queue.purge", { queue }),
  (queue) => methodOf(1, "queue.delete", { queue }),
  (queue) => methodOf(1, "basic.get", { queue, noAck: true }),
  (queue) => methodOf(1, "basic.consume", { queue, consumerTag: "", noAck: true }),
  (consumerTag) => methodOf(1, "basic.consume", { queue: "mine", consumerTag, noAck: true }),
  (exchange) => methodOf(1, "exchange.declare", { exchange, type: "topic", durable: true }),
  (exchange) => methodOf(1, "exchange.delete", { exchange }),
  (type) => methodOf(1, "exchange.declare", { exchange: "kind", type }),
  (exchange) => methodOf(1, "queue.bind", { queue: "mine", exchange, routingKey: "#" }),
  (queue) => methodOf(1, "queue.bind", { queue, exchange: "own", routingKey: "#" }),
  (routingKey) => methodOf(1, "queue.bind", { queue: "mine", exchange: "own", routingKey }),
  (routingKey) => methodOf(1, "queue.unbind", { queue: "mine", exchange: "own", routingKey }),
  (word) =>
    methodOf(1, "queue.bind", {
      queue: "mine",
      exchange: "own",
      routingKey: "k",
      arguments: fromPlain({ [word.slice(0, 99)]: word }),
    }),
  (word) =>
    methodOf(1, "queue.declare", {
      queue: "args",
      durable: true,
      arguments: fromPlain({ [word.slice(0, 99)]: word }),
    }),
  (word) => methodOf(1, "queue.bind", { queue: word, exchange: word, routingKey: word }),
];

/** Each publishes with the word in a field. */
const PUBLISHES: readonly ((socket: AmqpSocket, word: string) => void)[] = [
  (socket, exchange) => socket.publish(1, { exchange, routingKey: "k" }, MARK),
  (socket, routingKey) => socket.publish(1, { exchange: "", routingKey }, MARK),
  (socket, routingKey) => socket.publish(1, { exchange: "own", routingKey, mandatory: true }, MARK),
  (socket, word) =>
    socket.publish(1, { exchange: "own", routingKey: "k" }, MARK, {
      ...{ contentType: word, contentEncoding: word, correlationId: word, replyTo: word, messageId: word, type: word },
      ...{
        appId: word,
        clusterId: word,
        headers: fromPlain({ "Nats-Rollup": "all", "Nats-Msg-Id": word, [word.slice(0, 99)]: word }),
      },
    }),
];

/** How many attacks were answered: by a refusal, or done. */
let answered = 0;

/** Runs a command on a fresh connection as `acme`; a refusal is fine, a bug is not. */
async function attack(act: (socket: AmqpSocket) => void): Promise<void> {
  const socket = await AmqpSocket.open(at, await as("acme"));
  await socket.channel(1);
  act(socket);
  socket.send(1, "basic.qos", { prefetchCount: 1 }); // answered when all before it is
  for (let waits = 0; waits < 20; waits++) {
    const answer = await socket.next(15_000);
    if (answer.kind === "closed") break;
    if (answer.kind !== "method") continue;
    const { name, fields } = answer.method;
    answered++;
    if (name === "basic.qos-ok") break;
    if (name === "channel.close" || name === "connection.close") {
      expect(answer.method.fields.replyCode, JSON.stringify(fields)).not.toBe(541);
      break;
    }
  }
  socket.destroy();
}

async function prepare(): Promise<void> {
  const own = await AmqpSocket.open(at, await as("acme"));
  await own.channel(1);
  own.send(1, "exchange.declare", { exchange: "own", type: "topic", durable: true });
  await own.expect("exchange.declare-ok");
  own.send(1, "queue.declare", { queue: "mine", durable: true });
  await own.expect("queue.declare-ok");
  own.destroy();
}

/** Runs the attacks and holds what came of them against what may. */
async function withstands(attacks: () => Promise<void>): Promise<void> {
  await prepare();
  const before = await treasure();
  seen.length = 0;
  answered = 0;
  await attacks();
  expect(answered).toBeGreaterThan(100);
  await bus.flush();
  expect(await treasure()).toEqual(before);
  // The bus stores and hands on what was published under his own subjects, and deliveries under inboxes of the gateway.
  expect(seen.filter((subject) => !/^(amqp\.@acme\.|_INBOX\.)/.test(subject))).toEqual([]);
  const manager = await jetstreamManager(bus);
  for await (const { name } of manager.consumers.list("AMQP")) expect(name).toMatch(/^(\$keeper|(acme|other)@[\w-]+)$/);
  const bugs = gateway.lines.filter(({ level }) => level === "error" || level === "fatal");
  expect(bugs).toEqual([]);
}

describe("another tenant's queue", () => {
  it("is out of reach by every crafted word in every field", async () => {
    await withstands(async () => {
      for (const word of CRAFTED) {
        await Promise.all([
          ...FIELDS.map((make) =>
            attack((socket) => {
              for (const frame of [make(word)].flat()) socket.write(frame);
            }),
          ),
          ...PUBLISHES.map((publish) => attack((socket) => publish(socket, word))),
        ]);
      }
    });
    // The attacks were attacks: his own messages came through.
    expect(seen.some((subject) => subject.startsWith("amqp.@acme."))).toBe(true);
  }, 300_000);

  it(
    `is out of reach by ${SECONDS} s of random words (AMQP_FUZZ_SEED, AMQP_ATTACK_SECONDS)`,
    async () => {
      const piece = fc.constantFrom(
        ...CRAFTED,
        "other",
        "acme",
        "@",
        ".",
        "*",
        ">",
        "\r\n",
        "\0",
        "secret",
        "vault",
        "$",
      );
      const word = fc
        .array(fc.oneof(piece, fc.string({ unit: "binary", maxLength: 8 })), { minLength: 1, maxLength: 5 })
        .map((pieces) => {
          let text = pieces.join("");
          while (Buffer.byteLength(text) > 255) text = text.slice(0, -1);
          return text;
        });
      await withstands(async () => {
        const end = Date.now() + SECONDS * 1_000;
        for (let round = 0; Date.now() < end; round++) {
          const words = fc.sample(word, { seed: SEED + round, numRuns: 8 });
          await Promise.all(
            words.flatMap((text, index) => [
              attack((socket) => {
                for (const frame of [FIELDS[(round * 8 + index) % FIELDS.length]?.(text) ?? []].flat())
                  socket.write(frame);
              }),
              attack((socket) => PUBLISHES[(round + index) % PUBLISHES.length]?.(socket, text)),
            ]),
          );
        }
      });
    },
    SECONDS * 1_000 + 120_000,
  );

  it("gives its owner what was in it", async () => {
    const owner = await AmqpSocket.open(at, await as("other"));
    await owner.channel(1);
    for (let number = 0; number < 3; number++) {
      owner.send(1, "basic.get", { queue: "secret", noAck: true });
      await owner.expect("basic.get-ok");
      expect((await owner.expectContent()).body.toString()).toBe(`ingot ${number}`);
    }
    owner.destroy();
  });
});
