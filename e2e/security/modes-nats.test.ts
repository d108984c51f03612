// Who may connect, in the mode `nats`: the configuration of docs/security.md, word by word, on a real nats-server; a
// gateway as its own process; real client libraries.
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import { Connection } from "rabbitmq-client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { failToStart, type Gateway, startGateway } from "../harness/gateway.ts";
import { type NatsServer, startNats } from "../harness/nats-server.ts";
import { releaseAll, temporaryFolder } from "../harness/owned.ts";
import { documented } from "./documented.ts";
import { channelOf, closing, drain, login, publish } from "./logins.ts";

/** What the document does not hold: an account that is not served, a token, a user to be removed. */
const MORE = `
  EVIL { jetstream: enabled, users: [{ user: evil, password: evil }] }
  system { users: [{ user: sys, password: sys }] }
}
system_account: system
`;
const app = { user: "app", password: "change-me-app" };
const publisher = { user: "publisher", password: "change-me-publisher" };
const consumer = { user: "consumer", password: "change-me-consumer" };
const umbrella = { user: "umbrella-app", password: "change-me-umbrella-app" };

let folder: string;
let conf: string;
let nats: NatsServer;
let gateway: Gateway;
let env: Record<string, string>;
const native: NatsConnection[] = [];

async function dial(options: ConnectionOptions): Promise<NatsConnection> {
  const connection = await connect({ servers: nats.url, ...options });
  native.push(connection);
  return connection;
}

beforeAll(async () => {
  folder = temporaryFolder("amqp-security");
  conf = join(folder, "users.conf");
  const accounts = join(folder, "accounts.json");
  writeFileSync(accounts, documented("json", "accounts.json"));
  const block = documented("conf", "nats.conf").trimEnd();
  if (!block.endsWith("}")) throw new Error("the documented configuration ends with its accounts");
  writeFileSync(conf, block.slice(0, -1) + MORE);
  // An include is relative to the file that includes it: another folder beside this one.
  nats = await startNats({ conf: `include "../${basename(folder)}/users.conf"` });
  // Refused logins are what is tested here: the address is not to be kept waiting for them.
  env = { NATS_URL: nats.url, AMQP_AUTH: "nats", AMQP_NATS_ACCOUNTS: accounts, AMQP_LOGIN_DELAY: "0" };
  gateway = await startGateway({ env });
});
afterEach(async () => {
  for (const connection of native.splice(0)) await connection.close();
});
afterAll(releaseAll);

/** How many connections to the bus the gateway has for logins, by the bus's own count. */
async function connectionsOf(user: string): Promise<number> {
  const sys = await dial({ user: "sys", pass: "sys" });
  const answer = await sys.request("$SYS.REQ.SERVER.PING.CONNZ", JSON.stringify({ auth: true, limit: 1000 }), {
    timeout: 2000,
  });
  const { data } = answer.json<{ data: { connections: { name?: string; authorized_user?: string }[] } }>();
  return data.connections.filter(
    ({ name, authorized_user }) => authorized_user === user && name?.startsWith("amqp-gateway client") === true,
  ).length;
}

describe("a login", () => {
  it("is one to the bus: right credentials open a connection, under `/`, no name and the account's own", async () => {
    for (const vhost of ["/", "", "ACME"]) await (await login(gateway.port, { ...app, vhost })).close();
    await expect(login(gateway.port, { ...app, vhost: "UMBRELLA" })).rejects.toThrow();
    await (await login(gateway.port, { ...umbrella, vhost: "UMBRELLA" })).close();
  });

  it.each([
    ["a wrong password", { user: "app", password: "wrong" }],
    ["no password", { user: "app", password: "" }],
    ["nothing", { user: "", password: "" }],
    ["an unknown token", { user: "", password: "token" }],
    ["an unknown user", { user: "nobody", password: "x" }],
    ["an account that is not served", { user: "evil", password: "evil" }],
    ["a JWT without its seed", { user: "eyJhbGciOiJub25lIn0.e30.x", password: "x" }],
  ])("with %s is refused", async (_, credentials) => {
    await expect(login(gateway.port, credentials)).rejects.toThrow(
      "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN",
    );
  });

  it("shares its two connections to the bus with others of it, until the last one goes", async () => {
    const all = await Promise.all([1, 2, 3].map(() => login(gateway.port, app)));
    expect(await connectionsOf("app")).toBe(2);
    await all[0]?.close();
    await all[1]?.close();
    expect(await connectionsOf("app")).toBe(2);
    await all[2]?.close();
    await expect.poll(() => connectionsOf("app"), { timeout: 5000 }).toBe(0);
  });

  it("that another tenant answers for is refused", async () => {
    const evil = await dial({ user: "evil", pass: "evil" });
    const claim = JSON.stringify({ data: { user: "evil", account: "ACME", account_name: "ACME" } });
    evil.subscribe("$SYS.REQ.USER.INFO", { callback: (_, message) => void message.respond(claim) });
    await evil.flush();
    await expect(login(gateway.port, { user: "evil", password: "evil" })).rejects.toThrow("ACCESS_REFUSED");
  });
});

describe("an application that may do everything", () => {
  it("declares, binds, publishes, consumes, gets, purges and deletes", async () => {
    const channel = await channelOf(await login(gateway.port, app));
    await channel.assertExchange("everything", "topic");
    await channel.assertQueue("all");
    await channel.bindQueue("all", "everything", "a.#");
    await publish(channel, "everything", "a.b", "1");
    await publish(channel, "", "all", "2");
    expect(await drain(channel, "all")).toEqual(["1", "2"]);
    const taken: string[] = [];
    await channel.consume("all", (message) => {
      if (message === null) return;
      taken.push(message.content.toString());
      channel.ack(message);
    });
    await publish(channel, "everything", "a", "3");
    await expect.poll(() => taken).toEqual(["3"]);
    const temporary = await channel.assertQueue("", { exclusive: true });
    await channel.bindQueue(temporary.queue, "everything", "b");
    await publish(channel, "everything", "b", "4");
    expect((await channel.purgeQueue(temporary.queue)).messageCount).toBe(1);
    await channel.unbindQueue("all", "everything", "a.#");
    await channel.deleteQueue("all");
    await channel.deleteExchange("everything");
    expect(channel.codes).toEqual([]);
  });

  it("works with rabbitmq-client", async () => {
    const connection = new Connection({
      hostname: "127.0.0.1",
      port: gateway.port,
      username: app.user,
      password: app.password,
    });
    await connection.onConnect(5000);
    await connection.queueDeclare({ queue: "rc", durable: true });
    const sender = connection.createPublisher({ confirm: true });
    await sender.send({ routingKey: "rc" }, "hello");
    expect(await connection.basicGet({ queue: "rc", noAck: true })).toMatchObject({ body: "hello" });
    await connection.queueDelete({ queue: "rc" });
    await sender.close();
    await connection.close();
  });

  it("is refused a user-id that is not its own", async () => {
    const channel = await channelOf(await login(gateway.port, app));
    channel.publish("", "nowhere", Buffer.from("x"), { userId: "app" });
    await channel.waitForConfirms();
    channel.publish("", "nowhere", Buffer.from("x"), { userId: "gateway" });
    await expect.poll(() => channel.codes).toEqual([406]);
  });
});

describe("two accounts", () => {
  it("have the same names and never meet", async () => {
    const channels = [
      await channelOf(await login(gateway.port, app)),
      await channelOf(await login(gateway.port, umbrella)),
    ];
    for (const channel of channels) {
      await channel.assertExchange("x", "topic");
      await channel.assertQueue("q");
      await channel.bindQueue("q", "x", "#");
    }
    for (const [n, channel] of channels.entries()) await publish(channel, "x", "k", `${n}`);
    for (const [n, channel] of channels.entries()) expect(await drain(channel, "q")).toEqual([`${n}`]);
  });
});

describe("rights that a login does not have", () => {
  /** What the bus refuses: the code and the text of the channel's close. */
  async function refused(
    credentials: { user: string; password: string },
    act: (channel: Awaited<ReturnType<typeof channelOf>>) => Promise<unknown>,
  ): Promise<string> {
    const channel = await channelOf(await login(gateway.port, credentials));
    const said = new Promise<string>((resolve) => channel.once("error", (error: Error) => resolve(error.message)));
    act(channel).catch(() => undefined);
    return await said;
  }

  beforeAll(async () => {
    const channel = await channelOf(await login(gateway.port, app));
    await channel.assertExchange("orders", "topic");
    await channel.assertExchange("private", "topic");
    await channel.assertQueue("invoices");
    await channel.assertQueue("secrets");
    await channel.bindQueue("invoices", "orders", "#");
    await channel.bindQueue("secrets", "private", "#");
  });

  it.each([
    ["declare a queue", "$KV.amqp.q.mine", "assertQueue", ["mine"]],
    ["declare a queue that is there", "$KV.amqp.q.invoices", "assertQueue", ["invoices"]],
    ["delete a queue", "$KV.amqp.q.invoices", "deleteQueue", ["invoices"]],
    ["declare an exchange", "$KV.amqp.x.mine", "assertExchange", ["mine", "topic"]],
    ["delete an exchange", "$KV.amqp.x.orders", "deleteExchange", ["orders"]],
    ["bind", "$KV.amqp.b.invoices.private.k", "bindQueue", ["invoices", "private", "#"]],
    ["unbind", "$KV.amqp.b.invoices.orders.k", "unbindQueue", ["invoices", "orders", "#"]],
    ["get", "$JS.API.CONSUMER.MSG.NEXT.AMQP.invoices", "get", ["invoices"]],
    ["consume", "$JS.API.CONSUMER.MSG.NEXT.AMQP.invoices", "consume", ["invoices", () => undefined]],
    ["purge", "$JS.API.CONSUMER.MSG.NEXT.AMQP.invoices", "purgeQueue", ["invoices"]],
  ] as const)("to %s is 403 naming the subject", async (_, subject, method, args) => {
    const said = await refused(publisher, (channel) =>
      (channel[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args),
    );
    expect(said).toContain("403");
    expect(said).toContain(`'${subject}`);
  });

  it("let nothing of it happen", async () => {
    const channel = await channelOf(await login(gateway.port, app));
    expect(await channel.checkQueue("invoices")).toMatchObject({ queue: "invoices" });
    await expect(channel.checkQueue("mine")).rejects.toThrow("404");
    const again = await channelOf(await login(gateway.port, app));
    await publish(again, "private", "k", "not for invoices");
    expect(await drain(again, "invoices")).toEqual([]);
    await again.purgeQueue("secrets");
  });

  it("to publish is a nack and a 403 naming the subject; what is permitted around it is stored", async () => {
    const channel = await channelOf(await login(gateway.port, publisher));
    const said = new Promise<string>((resolve) => channel.once("error", (error: Error) => resolve(error.message)));
    const outcomes: unknown[] = [];
    const confirmed = (error: unknown): void => void outcomes.push(error === null ? "ack" : "nack");
    channel.publish("orders", "a", Buffer.from("1"), {}, confirmed);
    await channel.waitForConfirms();
    channel.publish("private", "k", Buffer.from("stolen"), {}, confirmed);
    const text = await said;
    expect(text).toContain("403");
    expect(text).toContain("'amqp.private.k'");
    await expect.poll(() => outcomes).toEqual(["ack", "nack"]);
    const reader = await channelOf(await login(gateway.port, app));
    expect(await drain(reader, "invoices")).toEqual(["1"]);
    expect(await drain(reader, "secrets")).toEqual([]);
  });

  it("to publish is a 403 without confirms too", async () => {
    const connection = await login(gateway.port, consumer);
    const channel = await connection.createChannel();
    const said = new Promise<string>((resolve) => channel.once("error", (error: Error) => resolve(error.message)));
    channel.publish("orders", "a", Buffer.from("1"));
    expect(await said).toContain("'amqp.orders.a'");
  });

  it("do not keep a consumer from its one queue, and what it does there counts for all", async () => {
    const connection = await login(gateway.port, consumer);
    const from = await channelOf(connection);
    const reader = await channelOf(await login(gateway.port, app));
    await from.prefetch(1);
    const taken: string[] = [];
    let ack = (): void => undefined;
    await from.consume("invoices", (message) => {
      if (message === null) return;
      taken.push(message.content.toString());
      ack = () => from.ack(message);
    });
    expect((await reader.checkQueue("invoices")).consumerCount).toBe(1);
    const sender = await channelOf(await login(gateway.port, publisher));
    for (const text of ["1", "2", "3"]) await publish(sender, "orders", "k", text);
    await expect.poll(() => taken).toEqual(["1"]);
    expect((await reader.checkQueue("invoices")).messageCount).toBe(2);
    ack();
    await expect.poll(() => taken).toEqual(["1", "2"]);
    await connection.close();
    expect(await drain(reader, "invoices")).toEqual(["2", "3"]);
  });
});

/** Gives ACME this user beside the documented ones, until the next call. */
function addUser(user?: string): void {
  const text = documented("conf", "nats.conf").trimEnd().slice(0, -1);
  writeFileSync(conf, (user === undefined ? text : text.replace("users: [", `users: [ ${user}`)) + MORE);
  process.kill(nats.pid, "SIGHUP");
}

/** Whether a login is let in; asked until the bus has read its configuration again. */
async function untilIn(user: string, password: string): Promise<void> {
  const tried = (): Promise<string> =>
    login(gateway.port, { user, password }).then(
      (connection) => connection.close().then(() => "in"),
      () => "out",
    );
  await expect.poll(tried, { timeout: 30_000 }).toBe("in");
}

describe("a user without the rights that every login needs", () => {
  it.each([
    ["to ask who it is", 'publish: ["amqp.>"], subscribe: ["_INBOX.>"]'],
    ["to hear answers", 'publish: ["$SYS.REQ.USER.INFO", "amqp.>"], subscribe: ["nothing"]'],
  ])("is refused: %s", async (_, permissions) => {
    const user = randomUUID();
    addUser(`{ user: "${user}", password: bare, permissions { ${permissions} } }`);
    const native = async (): Promise<string> => {
      const connection = await dial({ user, pass: "bare" }).catch(() => undefined);
      return connection === undefined ? "out" : "in";
    };
    await expect.poll(native, { timeout: 30_000 }).toBe("in");
    await expect(login(gateway.port, { user, password: "bare" })).rejects.toThrow("ACCESS_REFUSED");
  });
});

describe("a right that the bus takes back", () => {
  it("ends the consumer's connection, and nothing is lost", async () => {
    const user = randomUUID();
    const rights = (more: string): string =>
      `{ user: "${user}", password: p, permissions { publish: ["$SYS.REQ.USER.INFO"${more}], subscribe: ["_INBOX.>"] } }`;
    addUser(rights(', "$JS.API.CONSUMER.MSG.NEXT.AMQP.invoices", "$JS.ACK.AMQP.invoices.>"'));
    await untilIn(user, "p");
    const connection = await login(gateway.port, { user, password: "p" });
    const channel = await channelOf(connection);
    const taken: string[] = [];
    await channel.consume("invoices", (message) => void taken.push(message?.content.toString() ?? ""), { noAck: true });
    const sender = await channelOf(await login(gateway.port, app));
    await publish(sender, "orders", "k", "before");
    await expect.poll(() => taken).toEqual(["before"]);
    const closed = closing(connection);
    addUser(rights(""));
    expect(await closed).toMatchObject({ code: 320 });
    const again = await channelOf(await login(gateway.port, app));
    await publish(again, "orders", "k", "after");
    await expect.poll(async () => (await again.checkQueue("invoices")).messageCount, { timeout: 10_000 }).toBe(1);
    expect(await drain(again, "invoices")).toEqual(["after"]);
  });
});

describe("several gateways and a bus that is killed", () => {
  it("are one broker, and go on", async () => {
    const second = await startGateway({ env });
    const here = await login(gateway.port, app);
    const there = await login(second.port, consumer);
    const [sender, taker] = [await channelOf(here), await channelOf(there)];
    await sender.purgeQueue("invoices");
    const taken: string[] = [];
    await taker.consume("invoices", (message) => {
      if (message === null) return;
      taken.push(message.content.toString());
      taker.ack(message);
    });
    await publish(sender, "orders", "k", "1");
    await expect.poll(() => taken).toEqual(["1"]);
    expect((await sender.checkQueue("invoices")).consumerCount).toBe(1);
    await nats.restart();
    await publish(sender, "orders", "k", "2");
    await expect.poll(() => taken, { timeout: 20_000 }).toContain("2");
    await second.stop();
    await publish(sender, "orders", "k", "3");
    expect(await drain(sender, "invoices")).toEqual(["3"]);
  });
});

describe("a user that the bus removes", () => {
  it("is disconnected, and not let in again", async () => {
    const user = randomUUID();
    addUser(`{ user: "${user}", password: gone }`);
    await untilIn(user, "gone");
    const connection = await login(gateway.port, { user, password: "gone" });
    const closed = closing(connection);
    addUser();
    expect(await closed).toMatchObject({ code: 320 });
    await expect(login(gateway.port, { user, password: "gone" })).rejects.toThrow("ACCESS_REFUSED");
  });
});

describe("what is logged", () => {
  it("holds no password, of logins or of accounts", () => {
    const log = gateway.lines.map((line) => JSON.stringify(line)).join("\n");
    expect(log).toMatch(/login refused/);
    expect(log).not.toContain("change-me");
    expect(log).not.toContain("wrong");
  });
});

describe("boot fails closed", () => {
  it("on a bus that takes any login", async () => {
    const open = await startNats();
    const accounts = join(folder, "open.json");
    writeFileSync(accounts, JSON.stringify({ $G: { user: "x", password: "y" } }));
    const { code, lines } = await failToStart({
      env: { ...env, NATS_URL: open.url, AMQP_NATS_ACCOUNTS: accounts },
    });
    expect(code).not.toBe(0);
    expect(lines.some(({ msg }) => msg.includes("takes any login"))).toBe(true);
    await open.stop();
  });

  it.each([
    ["no file", "/nowhere/accounts.json", /cannot be read/],
    ["no JSON", "{ secret-in-it", /no JSON/],
    ["no account", "{}", /no account/],
    ["no login", '{"ACME":{"user":"x"}}', /no login for ACME/],
    ["a wrong login", '{"ACME":{"user":"gateway","password":"secret-in-it"}}', /refuses this login/],
  ])("with %s", async (_, text, why) => {
    const path = text.startsWith("/") ? text : join(folder, `${randomUUID()}.json`);
    if (path !== text) writeFileSync(path, text);
    const { code, lines } = await failToStart({ env: { ...env, AMQP_NATS_ACCOUNTS: path } });
    expect(code).not.toBe(0);
    const log = lines.map(({ msg }) => msg).join("\n");
    expect(log).toMatch(why);
    expect(log).not.toContain("secret-in-it");
  });
});
