// The other kinds of login of the mode `nats`: a user's JWT with its seed (operator mode), and a token.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { startNats } from "../harness/nats-server.ts";
import { releaseAll, temporaryFolder } from "../harness/owned.ts";
import { channelOf, drain, login, publish } from "./logins.ts";
import { makeOperator, type User } from "./operator.ts";

let folder: string;

beforeAll(() => {
  folder = temporaryFolder("amqp-security");
});
afterAll(releaseAll);

/** A gateway over a bus of that configuration, with these accounts. */
async function start(conf: string, accounts: object): Promise<Gateway> {
  const path = join(folder, `${Date.now()}.json`);
  writeFileSync(path, JSON.stringify(accounts));
  const nats = await startNats({ conf });
  return startGateway({
    env: { NATS_URL: nats.url, AMQP_AUTH: "nats", AMQP_NATS_ACCOUNTS: path, AMQP_LOGIN_DELAY: "0" },
  });
}

describe("a user's JWT and its seed", () => {
  const operator = makeOperator();
  let gateway: Gateway;
  let user: User;

  beforeAll(async () => {
    const creds = join(folder, "gateway.creds");
    writeFileSync(creds, operator.user("gateway").creds);
    gateway = await start(operator.conf, { [operator.account]: { creds } });
    user = operator.user("app");
  });

  it("are a login, whose user is the key that the JWT is of", async () => {
    const vhost = operator.account;
    const channel = await channelOf(await login(gateway.port, { user: user.jwt, password: user.seed, vhost }));
    await channel.assertQueue("q");
    await publish(channel, "", "q", "1");
    channel.publish("", "q", Buffer.from("2"), { userId: user.key });
    await channel.waitForConfirms();
    expect(await drain(channel, "q")).toEqual(["1", "2"]);
  });

  it("are limited by the permissions in the JWT", async () => {
    const limited = operator.user("limited", {
      pub: { allow: ["$SYS.REQ.USER.INFO", "amqp._.q"] },
      sub: { allow: ["_INBOX.>"] },
    });
    const channel = await channelOf(await login(gateway.port, { user: limited.jwt, password: limited.seed }));
    await publish(channel, "", "q", "allowed");
    const said = new Promise<string>((resolve) => channel.once("error", (error: Error) => resolve(error.message)));
    channel.publish("", "other", Buffer.from("denied"));
    expect(await said).toContain("'amqp._.other'");
  });

  it("are refused where the seed is another's, or the JWT is another operator's", async () => {
    const [other, foreign] = [operator.user("other"), makeOperator().user("app")];
    for (const [name, password] of [
      [user.jwt, other.seed],
      [foreign.jwt, foreign.seed],
      [user.jwt, user.jwt],
    ]) {
      await expect(login(gateway.port, { user: name ?? "", password: password ?? "" })).rejects.toThrow(
        "ACCESS_REFUSED",
      );
    }
  });

  it("stand in no line of the log", () => {
    const log = gateway.lines.map((line) => JSON.stringify(line)).join("\n");
    expect(log).not.toContain(user.seed);
    expect(log).not.toContain(user.jwt.split(".")[2]);
  });
});

describe("a token", () => {
  it("is a login as the password beside an empty user name", async () => {
    const gateway = await start('authorization { token: "a-secret-token" }', { $G: { token: "a-secret-token" } });
    const channel = await channelOf(await login(gateway.port, { user: "", password: "a-secret-token" }));
    await channel.assertQueue("q");
    await publish(channel, "", "q", "1");
    expect(await drain(channel, "q")).toEqual(["1"]);
    await expect(login(gateway.port, { user: "", password: "another" })).rejects.toThrow("ACCESS_REFUSED");
    expect(gateway.lines.map((line) => JSON.stringify(line)).join()).not.toContain("a-secret-token");
  });
});
