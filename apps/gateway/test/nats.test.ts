/** What the bus may answer while the gateway boots: each is one line with a remedy. Real servers, but for the old one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BootError } from "../src/boot-error.ts";
import type { Login } from "../src/config.ts";
import { type Serving, serveNats } from "../src/embedded/process.ts";
import { createLog } from "../src/log.ts";
import { connectBus } from "../src/nats.ts";
import { findNatsServer } from "../src/nats-server.ts";

const { path: binary } = await findNatsServer();
let folder: string;
let server: Serving | undefined;
let lines: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bus-"));
  lines = [];
});
afterEach(async () => {
  server?.signal("SIGKILL");
  await server?.ended;
  server = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const log = createLog("trace", { write: (line) => lines.push(line) });

/** A nats-server with these lines of configuration; gives its address. */
async function serve(...configuration: readonly string[]): Promise<string> {
  const file = join(folder, "nats-server.conf");
  writeFileSync(file, ['host: "127.0.0.1"', "port: -1", ...configuration, ""].join("\n"));
  server = await serveNats(binary, file, folder, createLog("silent"), () => {});
  return `nats://127.0.0.1:${server.port}`;
}

const jetstream = (): string => `jetstream { store_dir: ${JSON.stringify(folder)} }`;

async function refusal(url: string, login: Login = { kind: "none" }): Promise<string> {
  const answer = await connectBus({ servers: [url], tls: undefined, login, domain: undefined }, log).then(
    async (bus) => {
      await bus.close();
      return "connected";
    },
    (error: unknown) => error,
  );
  expect(answer).toBeInstanceOf(BootError);
  const text = String(answer);
  expect(text).not.toContain("\n");
  expect(text).not.toContain("hunter2");
  return text;
}

describe("the bus is refused in one line with a remedy", () => {
  it("where nobody listens", async () => {
    const url = await serve();
    server?.signal("SIGTERM");
    await server?.ended;
    const text = await refusal(url);
    expect(text).toContain(`the bus at ${url} cannot be reached`);
    expect(text).toContain("unset NATS_URL");
  });

  it("where the server is too old", async () => {
    const info = {
      server_id: "OLD",
      version: "2.9.10",
      proto: 1,
      max_payload: 1048576,
      headers: true,
      jetstream: true,
    };
    const old = createServer((socket) => {
      socket.write(`INFO ${JSON.stringify(info)}\r\n`);
      socket.on("data", (data) => data.includes("PING") && socket.write("PONG\r\n"));
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => old.listen(0, "127.0.0.1", resolve));
    const url = `nats://127.0.0.1:${(old.address() as AddressInfo).port}`;
    const text = await refusal(url);
    old.close();
    expect(text).toContain("nats-server 2.9.10, too old: upgrade it to 2.12.5");
  });

  it("where JetStream is off", async () => {
    expect(await refusal(await serve())).toMatch(/JetStream is off at the bus at .*: start nats-server with -js/);
  });

  it("where the account has no JetStream", async () => {
    const url = await serve(jetstream(), 'accounts { A { users: [{ user: "ada", password: "hunter2" }] } }');
    const text = await refusal(url, { kind: "user", user: "ada", password: "hunter2" });
    expect(text).toContain("JetStream is off");
  });

  it("where the login is unknown or missing", async () => {
    const url = await serve(jetstream(), 'authorization { user: "ada", password: "secret" }');
    expect(await refusal(url)).toMatch(/refuses this login: set NATS_CREDS/);
    expect(await refusal(url, { kind: "user", user: "ada", password: "hunter2" })).toContain("refuses this login");
  });

  it("where the login may not use JetStream", async () => {
    const user = '{ user: "ada", password: "hunter2", permissions: { publish: ["a"], subscribe: [">"] } }';
    const url = await serve(jetstream(), `authorization { users: [${user}] }`);
    const text = await refusal(url, { kind: "user", user: "ada", password: "hunter2" });
    expect(text).toMatch(/does not permit this login the publish \$JS\.API\.INFO: grant it/);
  });

  it("where a credentials file cannot be read", async () => {
    const file = join(folder, "hunter2");
    expect(await refusal("nats://127.0.0.1:1", { kind: "creds", file })).toContain("NATS_CREDS names a file");
  });
});

describe("a bus that will do", () => {
  it("is connected twice, and both connections survive its restart", async () => {
    const url = await serve(jetstream());
    const bus = await connectBus({ servers: [url], tls: undefined, login: { kind: "none" }, domain: undefined }, log);
    expect(bus.publishing.info?.client_id).not.toBe(bus.delivering.info?.client_id);
    const { port } = server ?? { port: 0 };
    server?.signal("SIGKILL");
    await server?.ended;
    await serve(jetstream(), `port: ${port}`);
    const back = (): number => lines.filter((line) => line.includes("the bus is back")).length;
    while (back() < 2) await sleep(10);
    await Promise.all([bus.publishing.flush(), bus.delivering.flush()]);
    await Promise.all([bus.close(), bus.close()]);
    expect(bus.publishing.isClosed() && bus.delivering.isClosed()).toBe(true);
  });

  it.each([
    [
      "a user",
      'authorization { user: "ada", password: "hunter2" }',
      { kind: "user", user: "ada", password: "hunter2" },
    ],
    ["a token", 'authorization { token: "hunter2" }', { kind: "token", token: "hunter2" }],
  ] as const)("takes %s", async (_what, configuration, login) => {
    const url = await serve(jetstream(), configuration);
    const bus = await connectBus({ servers: [url], tls: undefined, login, domain: undefined }, log);
    await bus.close();
    expect(lines.join("")).not.toContain("hunter2");
  });

  it("is asked in its domain", async () => {
    const url = await serve(`jetstream { store_dir: ${JSON.stringify(folder)}, domain: hub }`);
    const bus = await connectBus({ servers: [url], tls: undefined, login: { kind: "none" }, domain: "hub" }, log);
    await bus.close();
    await expect(
      connectBus({ servers: [url], tls: undefined, login: { kind: "none" }, domain: "elsewhere" }, log),
    ).rejects.toThrow("NATS_JS_DOMAIN");
  });
});
