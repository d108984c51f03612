// Who may connect, in the mode `jwt` (and `none` beside it on the same bus): a real nats-server, gateways as their own
// processes, real client libraries, and an issuer whose keys are made here.
import { encodeTable, fromPlain } from "@amqp/codec";
import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { Connection } from "rabbitmq-client";
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
import { AmqpSocket } from "../harness/socket.ts";
import { channelOf, closing, drain, login, publish } from "./logins.ts";

let nats: NatsServer;
let bus: NatsConnection;
let key: Signing;
let keys: KeyServer;
let gateway: Gateway;
let second: Gateway;
let flat: Gateway;

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  NATS_URL: nats.url,
  AMQP_AUTH: "jwt",
  AMQP_JWT_JWKS: keys.url,
  AMQP_JWT_ISSUER: ISSUER,
  AMQP_JWT_AUDIENCE: AUDIENCE,
  AMQP_LOGIN_DELAY: "0", // many logins fail here from one address
  ...more,
});
const acme = (claims = {}): Promise<string> => token(key, { org: "acme", ...claims });
const other = (claims = {}): Promise<string> => token(key, { org: "other", ...claims });

beforeAll(async () => {
  nats = await startNats();
  bus = await connect({ servers: nats.url });
  key = await signing("one");
  keys = await KeyServer.start(key.jwk);
  [gateway, second] = await Promise.all([startGateway({ env: env() }), startGateway({ env: env() })]);
  flat = await startGateway({ env: { NATS_URL: nats.url } });
});
afterAll(async () => {
  await bus?.close();
  await keys?.stop();
  await releaseAll();
});

describe("a login", () => {
  it("by a token opens a connection, whatever the user name beside it", async () => {
    for (const user of ["", "guest", "ada"]) {
      const connection = await login(gateway.port, { user, password: await acme() });
      await connection.close();
    }
  });

  it.each([
    ["guest", "guest"],
    ["", ""],
    ["ada", "a.b.c"],
  ])("of %j and %j is refused in RabbitMQ's words", async (user, password) => {
    await expect(login(gateway.port, { user, password })).rejects.toThrow(
      "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.",
    );
  });

  it("by a token of another issuer, for another audience, over, or without an organisation is refused", async () => {
    for (const claims of [{ iss: "x" }, { aud: "x" }, { exp: now() - 1 }, { org: undefined }, { org: "a.>" }]) {
      await expect(login(gateway.port, { password: await acme(claims) })).rejects.toThrow("ACCESS_REFUSED");
    }
  });

  it("that is refused drops the socket without a word, after a while, where the client knows no better", async () => {
    const socket = AmqpSocket.connect({ host: "127.0.0.1", port: gateway.port });
    const began = Date.now();
    await socket.start({ capabilities: {}, response: "\0guest\0guest" });
    expect(await socket.next(6000)).toEqual({ kind: "closed" });
    expect(Date.now() - began).toBeGreaterThan(2500);
  });

  it("works by AMQPLAIN too, and with rabbitmq-client", async () => {
    const table = encodeTable(fromPlain({ LOGIN: "ada", PASSWORD: await acme() }));
    const socket = AmqpSocket.connect({ host: "127.0.0.1", port: gateway.port });
    await socket.login({ mechanism: "AMQPLAIN", response: table.subarray(4) });
    socket.destroy();
    const connection = new Connection({
      hostname: "127.0.0.1",
      port: gateway.port,
      username: "ada",
      password: await acme(),
    });
    await connection.onConnect(5000);
    await connection.close();
  });
});

describe("two tenants", () => {
  it("have the same names and never meet, nor the flat namespace on the same bus", async () => {
    const ports = [
      ["acme", gateway.port, await acme()],
      ["other", gateway.port, await other()],
      ["flat", flat.port, "guest"],
    ] as const;
    const channels = new Map<string, Awaited<ReturnType<typeof channelOf>>>();
    for (const [name, port, password] of ports) {
      const channel = await channelOf(await login(port, { user: "guest", password }));
      await channel.assertExchange("x", "topic");
      await channel.assertExchange("f", "fanout");
      await channel.assertQueue("q");
      await channel.bindQueue("q", "x", "#");
      await channel.bindQueue("q", "f", "");
      channels.set(name, channel);
    }
    for (const [name, channel] of channels) {
      await publish(channel, "x", "a.b", `${name} topic`);
      await publish(channel, "f", "", `${name} fanout`);
      await publish(channel, "", "q", `${name} default`);
    }
    for (const [name, channel] of channels) {
      expect(await drain(channel, "q")).toEqual([`${name} topic`, `${name} fanout`, `${name} default`]);
    }
    for (const channel of channels.values()) await channel.deleteQueue("q");
  });

  it("are spelled on the bus so that a native reader sees one of them only", async () => {
    const seen: string[] = [];
    const subscription = bus.subscribe("amqp.@acme.>", { callback: (_, message) => void seen.push(message.subject) });
    await bus.flush();
    const [a, b] = [
      await channelOf(await login(gateway.port, { password: await acme() })),
      await channelOf(await login(gateway.port, { password: await other() })),
    ];
    for (const channel of [a, b]) {
      await channel.assertExchange("nx", "topic");
      await channel.assertQueue("nq");
      await channel.bindQueue("nq", "nx", "k.#");
      await publish(channel, "nx", "k.1", "text");
      await publish(channel, "", "nq", "text");
    }
    await expect.poll(() => seen).toEqual(["amqp.@acme.nx.k.1", "amqp.@acme._.nq"]);
    subscription.unsubscribe();
    const manager = await jetstreamManager(bus);
    const info = await manager.consumers.info("AMQP", "acme@nq");
    expect(info.config.filter_subjects).toEqual(["amqp.@acme._.nq", "amqp.@acme.nx.k", "amqp.@acme.nx.k.>"]);
    const bucket = await new Kvm(bus).open("amqp");
    for (const org of ["acme", "other"]) expect(await bucket.get(`o.${org}.q.nq`)).not.toBeNull();
    expect(await bucket.get("q.nq")).toBeNull();
  });

  it("outlive a restart of the flat gateway, and it a restart of theirs", async () => {
    const a = await channelOf(await login(gateway.port, { password: await acme() }));
    const f = await channelOf(await login(flat.port, { user: "guest", password: "guest" }));
    for (const channel of [a, f]) await channel.assertQueue("stays");
    await publish(a, "", "stays", "acme");
    await publish(f, "", "stays", "flat");
    await flat.stop();
    flat = await startGateway({ env: { NATS_URL: nats.url } });
    expect(await drain(a, "stays")).toEqual(["acme"]);
    await publish(a, "", "stays", "acme again");
    await gateway.stop();
    await second.stop();
    [gateway, second] = await Promise.all([startGateway({ env: env() }), startGateway({ env: env() })]);
    const again = await channelOf(await login(flat.port, { user: "guest", password: "guest" }));
    expect(await drain(again, "stays")).toEqual(["flat"]);
    expect(await drain(await channelOf(await login(gateway.port, { password: await acme() })), "stays")).toEqual([
      "acme again",
    ]);
  });

  it("are served by several gateways as one", async () => {
    const here = await channelOf(await login(gateway.port, { password: await acme() }));
    const there = await channelOf(await login(second.port, { password: await acme() }));
    await here.assertExchange("sx", "direct");
    await here.assertQueue("sq");
    await there.bindQueue("sq", "sx", "k");
    await publish(there, "sx", "k", "from there");
    await publish(here, "sx", "k", "from here");
    expect(await drain(there, "sq")).toEqual(["from there", "from here"]);
    await there.consume("sq", () => undefined);
    expect((await here.checkQueue("sq")).consumerCount).toBe(1);
  });
});

describe("a virtual host", () => {
  it("is the namespace under `/`, under no name, and under its own", async () => {
    const names: string[] = [];
    for (const vhost of ["/", "", "acme"]) {
      const channel = await channelOf(await login(gateway.port, { password: await acme(), vhost }));
      names.push((await channel.assertQueue("v")).queue);
    }
    expect(names).toEqual(["v", "v", "v"]);
  });

  it.each(["other", "acme/", "@acme", "acme.q", "ACME", "*", ">", "a".repeat(255), "a\r\nb"])(
    "of another name is 530: %j",
    async (vhost) => {
      const socket = AmqpSocket.connect({ host: "127.0.0.1", port: gateway.port });
      await socket.login({ response: `\0\0${await acme()}` });
      socket.tune();
      socket.send(0, "connection.open", { virtualHost: vhost });
      expect(await socket.expect("connection.close")).toMatchObject({ replyCode: 530 });
      socket.destroy();
    },
  );
});

describe("a user-id", () => {
  it("must be the token's subject", async () => {
    const channel = await channelOf(await login(gateway.port, { user: "grace", password: await acme({ sub: "ada" }) }));
    await channel.assertQueue("u");
    channel.publish("", "u", Buffer.from("mine"), { userId: "ada" });
    await channel.waitForConfirms();
    channel.publish("", "u", Buffer.from("not mine"), { userId: "grace" });
    await expect.poll(() => channel.codes).toEqual([406]);
    const again = await channelOf(await login(gateway.port, { password: await acme() }));
    expect(await drain(again, "u")).toEqual(["mine"]);
  });
});

describe("the end of a token", () => {
  it("ends its connection with 320", async () => {
    const connection = await login(gateway.port, { password: await acme({ exp: now() + 2 }) });
    const error = await closing(connection);
    expect(error).toMatchObject({ code: 320 });
    expect(error.message).toMatch(/expired/);
  });

  it("is put off by a fresh token of the same user and organisation", async () => {
    const connection = await login(gateway.port, { password: await acme({ exp: now() + 2 }) });
    let closed = false;
    connection.on("close", () => {
      closed = true;
    });
    await connection.updateSecret(Buffer.from(await acme({ exp: now() + 60 })), "about to expire");
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(closed).toBe(false);
    await (await channelOf(connection)).assertQueue("still");
  });

  it.each([
    ["another organisation", { org: "other" }],
    ["another user", { sub: "grace" }],
    ["the past", { exp: 1 }],
    ["another issuer", { iss: "x" }],
  ])("is not put off by a token of %s: 530", async (_, claims) => {
    const connection = await login(gateway.port, { password: await acme() });
    const error = closing(connection);
    connection.updateSecret(Buffer.from(await acme(claims)), "swap").catch(() => undefined);
    expect(await error).toMatchObject({ code: 530 });
  });
});

describe("what is logged", () => {
  it("says why a login was refused, and holds no token, no password and no subject of a refused one", async () => {
    const good = await acme();
    const bad = await acme({ aud: "elsewhere", sub: "secret-subject" });
    await (await login(gateway.port, { user: "named", password: good })).close();
    await expect(login(gateway.port, { user: bad, password: bad })).rejects.toThrow();
    await expect(login(gateway.port, { user: "someone", password: "hunter2-secret" })).rejects.toThrow();
    const log = gateway.lines.map((line) => JSON.stringify(line)).join("\n");
    expect(log).toMatch(/login refused/);
    expect(log).toMatch(/\\"aud\\" claim/);
    for (const secret of [good, bad, "secret-subject", "hunter2-secret", ...good.split("."), ...bad.split(".")]) {
      expect(log).not.toContain(secret);
    }
  });
});
