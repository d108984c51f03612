// What a gateway of the mode `nats` does not start on.
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failToStart } from "../harness/gateway.ts";
import { startNats } from "../harness/nats-server.ts";
import { releaseAll } from "../harness/owned.ts";
import { DocumentedBus } from "./documented-bus.ts";

let bus: DocumentedBus;

beforeAll(async () => {
  bus = await DocumentedBus.start();
});
afterAll(releaseAll);

describe("boot fails closed", () => {
  it("on a bus that takes any login", async () => {
    const open = await startNats();
    const accounts = join(bus.folder, "open.json");
    writeFileSync(accounts, JSON.stringify({ $G: { user: "x", password: "y" } }));
    const { code, lines } = await failToStart({
      env: { ...bus.env, NATS_URL: open.url, AMQP_NATS_ACCOUNTS: accounts },
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
    const path = text.startsWith("/") ? text : join(bus.folder, `${randomUUID()}.json`);
    if (path !== text) writeFileSync(path, text);
    const { code, lines } = await failToStart({ env: { ...bus.env, AMQP_NATS_ACCOUNTS: path } });
    expect(code).not.toBe(0);
    const log = lines.map(({ msg }) => msg).join("\n");
    expect(log).toMatch(why);
    expect(log).not.toContain("secret-in-it");
  });
});
