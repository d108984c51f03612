// Tokens that must not let anybody in, each over a real socket: forged, stale, meant for others, naming no organisation
// or one that would be a pattern, huge; and a guesser who is slowed down. issue 4, part 5.
import { createPublicKey, createSign } from "node:crypto";
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
import { releaseAll } from "../harness/owned.ts";
import { AmqpSocket } from "../harness/socket.ts";
import { growthDuring } from "../hostile/memory.ts";

let key: Signing;
let rsa: Signing;
let keys: KeyServer;
let gateway: Gateway;
let at: { host: string; port: number };

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  AMQP_AUTH: "jwt",
  AMQP_JWT_JWKS: keys.url,
  AMQP_JWT_ISSUER: ISSUER,
  AMQP_JWT_AUDIENCE: AUDIENCE,
  AMQP_LOGIN_DELAY: "0",
  ...more,
});

beforeAll(async () => {
  [key, rsa] = await Promise.all([signing("one"), signing("two", "RS256")]);
  keys = await KeyServer.start(key.jwk, rsa.jwk);
  gateway = await startGateway({ env: env() });
  at = { host: "127.0.0.1", port: gateway.port };
});
afterAll(async () => {
  await keys?.stop();
  await releaseAll();
});

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const claims = { iss: ISSUER, aud: AUDIENCE, sub: "ada", org: "acme", iat: now(), exp: now() + 3600 };

/** What answers these credentials: the close, or "in". */
async function answerTo(
  response: string,
  mechanism = "PLAIN",
): Promise<"in" | { replyCode: number; replyText: string }> {
  const socket = AmqpSocket.connect(at);
  try {
    await socket.start({ response, mechanism });
    const answer = await socket.next(15_000);
    if (answer.kind !== "method") throw new Error(answer.kind);
    if (answer.method.name === "connection.close") return answer.method.fields;
    return "in";
  } finally {
    socket.destroy();
  }
}

/** HMAC with a public key for a secret, as libraries that trust the header once verified it. */
async function hmac(secret: string | Buffer): Promise<string> {
  const { createHmac } = await import("node:crypto");
  const head = `${part({ alg: "HS256", kid: key.kid })}.${part(claims)}`;
  return `${head}.${createHmac("sha256", secret).update(head).digest("base64url")}`;
}

describe("no login", () => {
  const forged: [string, () => string | Promise<string>][] = [
    ["nothing", () => ""],
    ["a word", () => "guest"],
    ["dots", () => ".."],
    ["a line break", () => "a\r\nb"],
    ["alg none", () => `${part({ alg: "none" })}.${part(claims)}.`],
    ["alg None, a signature of nothing", () => `${part({ alg: "None", kid: key.kid })}.${part(claims)}.AA`],
    [
      "alg none in the place of a good one",
      async () => `${part({ alg: "none" })}.${(await token(key)).split(".")[1]}.`,
    ],
    ["no signature", async () => `${(await token(key)).split(".").slice(0, 2).join(".")}.`],
    ["HS256 with the public key as JWK", () => hmac(JSON.stringify(key.jwk))],
    [
      "HS256 with the public key as PEM",
      () => hmac(createPublicKey({ key: rsa.jwk, format: "jwk" }).export({ type: "spki", format: "pem" })),
    ],
    ["HS256 with nothing", () => hmac("")],
    [
      "a key of its own in the header",
      async () => {
        const own = await signing("own", "RS256");
        const head = `${part({ alg: "RS256", jwk: own.jwk })}.${part(claims)}`;
        const { KeyObject } = await import("node:crypto");
        return `${head}.${createSign("sha256").update(head).sign(KeyObject.from(own.key)).toString("base64url")}`;
      },
    ],
    ["a key of another issuer under our key's id", async () => token({ ...(await signing("one")), kid: "one" })],
    ["a key that is not in the set", async () => token(await signing("three"))],
    ["expired", () => token(key, { exp: now() - 1 })],
    ["without an end", () => token(key, { exp: undefined })],
    ["an end that is a word", () => token(key, { exp: "tomorrow" })],
    ["not yet valid", () => token(key, { nbf: now() + 60 })],
    ["for another audience", () => token(key, { aud: "http" })],
    ["for no audience", () => token(key, { aud: undefined })],
    ["of another issuer", () => token(key, { iss: `${ISSUER}.evil.test` })],
    ["of no user", () => token(key, { sub: "" })],
    ...["a.>", "*", ">", "", " ", "@acme", "acme@x", "acme.other", "a\0b", "a\r\nb", "é", "x".repeat(64)].map(
      (org): [string, () => Promise<string>] => [`org ${JSON.stringify(org)}`, () => token(key, { org })],
    ),
    ...[{ name: "acme" }, ["acme"], 7, true, null, undefined].map((org): [string, () => Promise<string>] => [
      `org ${JSON.stringify(org)}`,
      () => token(key, { org }),
    ]),
    ["__proto__ as its organisation's claim", () => token(key, { org: undefined, ["__proto__"]: { org: "acme" } })],
  ];

  it.each(forged)("by a token: %s", async (_, make) => {
    expect(await answerTo(`\0ada\0${await make()}`)).toMatchObject({
      replyCode: 403,
      replyText: expect.stringMatching(/^ACCESS_REFUSED - Login was refused/),
    });
  });

  it.each(["", "\0", "\0\0", "\0\0\0", "guest", "\0guest\0guest", "\0guest\0", "\0\0guest", "\xff\xfe"])(
    "by credentials %j",
    async (response) => {
      const answer = await answerTo(response);
      if (answer === "in") throw new Error("it was let in");
      expect([403, 502]).toContain(answer.replyCode);
    },
  );

  it.each(["EXTERNAL", "ANONYMOUS", "", "plain", "PLAIN\0"])("by the mechanism %j", async (mechanism) => {
    expect(await answerTo(`\0ada\0${await token(key)}`, mechanism)).toMatchObject({ replyCode: 403 });
  });

  it("leaves nothing open: what is sent behind a refused login is not done", async () => {
    const socket = AmqpSocket.connect(at);
    await socket.start({ response: "\0ada\0no" });
    socket.tune();
    socket.send(0, "connection.open", { virtualHost: "/" });
    socket.send(1, "channel.open", {});
    socket.send(1, "queue.declare", { queue: "smuggled", durable: true });
    expect(await socket.expect("connection.close")).toMatchObject({ replyCode: 403 });
    expect((await socket.collect(300)).filter(({ kind }) => kind === "method")).toEqual([]);
    const good = await AmqpSocket.open(at, { response: `\0ada\0${await token(key)}` });
    await good.channel(1);
    good.send(1, "queue.declare", { queue: "smuggled", passive: true });
    expect(await good.expect("channel.close")).toMatchObject({ replyCode: 404 });
    for (const each of [socket, good]) each.destroy();
  });
});

describe("a large token", () => {
  it("of twelve kibioctets lets its bearer in", async () => {
    expect(await answerTo(`\0ada\0${await token(key, { groups: "x".repeat(8_500) })}`)).toBe("in");
  });

  it("of more than a handshake may have is refused before it is read, without memory", async () => {
    const huge = await token(key, { groups: "x".repeat(200_000) });
    const growth = await growthDuring(gateway.pid, async () => {
      for (let round = 0; round < 50; round++) {
        const answer = await answerTo(`\0ada\0${huge}`);
        if (answer === "in") throw new Error("it was let in");
        expect([501, 506]).toContain(answer.replyCode);
      }
    });
    expect(growth).toBeLessThan(80);
  }, 60_000);
});

describe("a guesser", () => {
  it("is slowed down, alone or in parallel, and a bearer of a good token at the same address waits but gets in", async () => {
    const slow = await startGateway({ env: env({ AMQP_LOGIN_DELAY: "1" }) });
    const there = { host: "127.0.0.1", port: slow.port };
    const good = await token(key, { exp: now() + 300 });
    const began = performance.now();
    const guesses = Array.from({ length: 40 }, async (_, number) => {
      const socket = AmqpSocket.connect(there);
      await socket.start({ response: `\0ada\0guess-${number}` });
      const { replyCode } = await socket.expect("connection.close", 15_000);
      socket.destroy();
      return replyCode;
    });
    expect(new Set(await Promise.all(guesses))).toEqual(new Set([403]));
    const lines = slow.lines.filter(({ msg }) => msg === "login refused");
    expect(lines).toHaveLength(40);
    const looked = lines.filter(({ why }) => !`${why}`.includes("has to wait")).length;
    // All that came before the first had failed were looked at at once; now one a second is.
    const again = performance.now();
    const more = Array.from({ length: 20 }, async () => {
      const socket = AmqpSocket.connect(there);
      await socket.start({ response: "\0ada\0guess" });
      await socket.expect("connection.close", 15_000);
      socket.destroy();
    });
    await Promise.all(more);
    const read = slow.lines.filter(
      ({ msg, why }) => msg === "login refused" && !`${why}`.includes("has to wait"),
    ).length;
    expect(read - looked).toBeLessThanOrEqual(Math.ceil((performance.now() - again) / 1_000) + 1);
    const socket = await AmqpSocket.connect(there);
    await socket.start({ response: `\0ada\0${good}` });
    await socket.expect("connection.tune", 15_000);
    socket.destroy();
    expect(performance.now() - began).toBeGreaterThan(1_000);
    await slow.stop();
  }, 60_000);
});
