// Who may connect, in the mode `nats`, and what they may do: a gateway as its own process; real client libraries.
import { Connection } from "rabbitmq-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { app, consumer, DocumentedBus, publisher, umbrella } from "./documented-bus.ts";
import { channelOf, drain, login, publish } from "./logins.ts";

let bus: DocumentedBus;
let gateway: Gateway;

beforeAll(async () => {
  bus = await DocumentedBus.start();
  gateway = await startGateway({ env: bus.env });
});
afterAll(releaseAll);

/** How many connections to the bus the gateway has for logins, by the bus's own count. */
async function connectionsOf(user: string): Promise<number> {
  const sys = await bus.dial({ user: "sys", pass: "sys" });
  const answer = await sys.request("$SYS.REQ.SERVER.PING.CONNZ", JSON.stringify({ auth: true, limit: 1000 }), {
    timeout: 2000,
  });
  await sys.close();
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
    const evil = await bus.dial({ user: "evil", pass: "evil" });
    const claim = JSON.stringify({ data: { user: "evil", account: "ACME", account_name: "ACME" } });
    evil.subscribe("$SYS.REQ.USER.INFO", { callback: (_, message) => void message.respond(claim) });
    await evil.flush();
    await expect(login(gateway.port, { user: "evil", password: "evil" })).rejects.toThrow("ACCESS_REFUSED");
    await evil.close();
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

describe("what is logged", () => {
  it("holds no password, of logins or of accounts", () => {
    const log = gateway.lines.map((line) => JSON.stringify(line)).join("\n");
    expect(log).toMatch(/login refused/);
    expect(log).not.toContain("change-me");
    expect(log).not.toContain("wrong");
  });
});
