// What changes at the bus under the logins of the mode `nats`: users come and go, rights are taken back, the bus is killed.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { app, consumer, DocumentedBus } from "./documented-bus.ts";
import { channelOf, closing, drain, login, publish } from "./logins.ts";

let bus: DocumentedBus;
let gateway: Gateway;

beforeAll(async () => {
  bus = await DocumentedBus.start();
  gateway = await startGateway({ env: bus.env });
  const channel = await channelOf(await login(gateway.port, app));
  await channel.assertExchange("orders", "topic");
  await channel.assertQueue("invoices");
  await channel.bindQueue("invoices", "orders", "#");
});
afterAll(releaseAll);

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
    bus.addUser(`{ user: "${user}", password: bare, permissions { ${permissions} } }`);
    const native = async (): Promise<string> => {
      const connection = await bus.dial({ user, pass: "bare" }).catch(() => undefined);
      await connection?.close();
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
    bus.addUser(rights(', "$JS.API.CONSUMER.MSG.NEXT.AMQP.invoices", "$JS.ACK.AMQP.invoices.>"'));
    await untilIn(user, "p");
    const connection = await login(gateway.port, { user, password: "p" });
    const channel = await channelOf(connection);
    const taken: string[] = [];
    await channel.consume("invoices", (message) => void taken.push(message?.content.toString() ?? ""), { noAck: true });
    const sender = await channelOf(await login(gateway.port, app));
    await publish(sender, "orders", "k", "before");
    await expect.poll(() => taken).toEqual(["before"]);
    const closed = closing(connection);
    bus.addUser(rights(""));
    expect(await closed).toMatchObject({ code: 320 });
    const again = await channelOf(await login(gateway.port, app));
    await publish(again, "orders", "k", "after");
    await expect.poll(async () => (await again.checkQueue("invoices")).messageCount, { timeout: 10_000 }).toBe(1);
    expect(await drain(again, "invoices")).toEqual(["after"]);
  });
});

describe("several gateways and a bus that is killed", () => {
  it("are one broker, and go on", async () => {
    const second = await startGateway({ env: bus.env });
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
    await bus.server.restart();
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
    bus.addUser(`{ user: "${user}", password: gone }`);
    await untilIn(user, "gone");
    const connection = await login(gateway.port, { user, password: "gone" });
    const closed = closing(connection);
    bus.addUser();
    expect(await closed).toMatchObject({ code: 320 });
    await expect(login(gateway.port, { user, password: "gone" })).rejects.toThrow("ACCESS_REFUSED");
  });
});
