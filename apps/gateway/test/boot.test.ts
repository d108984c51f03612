/**
 * A step of boot that fails is one fatal line with a remedy, exit code 1, and nothing left.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, it } from "vitest";
import { Site } from "./site.ts";

const site = new Site("boot");
const anyPorts = ["--port", "0", "--nats-port", "0"] as const;

/** Runs it to its failure; gives the one line it dies with. */
async function failure(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const program = site.run(args, env);
  const serves = program.line("serving AMQP").catch(() => undefined);
  expect(await Promise.race([program.ended, serves]), program.text).toBe(1);
  const fatal = program.lines.filter(({ level }) => level === "fatal");
  expect(fatal, program.text).toHaveLength(1);
  expect(program.text).not.toContain("serving AMQP");
  expect(program.text).not.toContain("hunter2");
  expect(existsSync(join(site.dataDir, "nats-server.pid"))).toBe(false);
  return fatal[0]?.msg ?? "";
}

describe("boot fails closed", () => {
  it("where the bus cannot be reached", async () => {
    const url = await site.serve();
    site.servers[0]?.signal("SIGTERM");
    await site.servers[0]?.ended;
    expect(await failure(["--port", "0", "--nats-url", url])).toMatch(
      /cannot be reached .*: start it, correct NATS_URL/,
    );
  });

  it("where the server is too old", async () => {
    const port = await site.takenPort(
      'INFO {"server_id":"OLD","version":"2.9.10","proto":1,"max_payload":1048576,"headers":true}\r\n',
    );
    const line = await failure(["--port", "0", "--nats-url", `nats://127.0.0.1:${port}`]);
    expect(line).toContain("nats-server 2.9.10, too old: upgrade it");
  });

  it("where JetStream is off", async () => {
    const line = await failure(["--port", "0", "--nats-url", await site.serve("debug: false")]);
    expect(line).toMatch(/JetStream is off .*: start nats-server with -js/);
  });

  it("where the stream is somebody else's", async () => {
    const url = await site.serve();
    const connection = await connect({ servers: url });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "AMQP", subjects: ["amqp.>"], retention: RetentionPolicy.Limits });
    await connection.close();
    const line = await failure(["--port", "0", "--nats-url", url]);
    expect(line).toContain("AMQP");
    expect(line).toMatch(/retention.*AMQP_STREAM/);
  });

  it("where the bucket is somebody else's", async () => {
    const url = await site.serve();
    const connection = await connect({ servers: url });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "KV_amqp", subjects: ["$KV.amqp.>"], storage: StorageType.Memory });
    await connection.close();
    expect(await failure(["--port", "0", "--nats-url", url])).toMatch(/bucket.*amqp/);
  });

  it("where the login may not do it", async () => {
    const user = '{ user: "ada", password: "hunter2", permissions: { publish: ["$JS.API.INFO"], subscribe: [">"] } }';
    const url = await site.serve(site.jetstream, `authorization { users: [${user}] }`);
    const env = { NATS_URL: url, NATS_USER: "ada", NATS_PASSWORD: "hunter2" };
    expect(await failure(["--port", "0"], env)).toMatch(/permi.*(grant|allow)/);
  });

  it("where the port is taken, before a server is started for it", async () => {
    const port = await site.takenPort();
    const line = await failure(["--port", String(port), "--nats-port", "0"]);
    expect(line).toBe(
      `port ${port} on 127.0.0.1 is taken: stop what listens there, or set CLOUD_AMQP_PORT to another port (0 takes any free one)`,
    );
    expect(existsSync(site.dataDir)).toBe(false);
    const elsewhere = await failure(["--port", String(port), "--nats-url", await site.serve()]);
    expect(elsewhere).toBe(line);
  });

  it("where the server that it started refuses the stream, and stops that server", async () => {
    const line = await failure([...anyPorts, "--stream-max-bytes", String(Number.MAX_SAFE_INTEGER)]);
    expect(line).toMatch(/storage/);
    expect(existsSync(site.dataDir)).toBe(true);
  });

  it("where the embedded server's port is taken", async () => {
    const port = await site.takenPort();
    const line = await failure(["--port", "0", "--nats-port", String(port)]);
    expect(line).toMatch(/is taken, .*: set NATS_URL .* or AMQP_NATS_PORT/);
  });

  it("where the data folder is another gateway's", async () => {
    const first = site.run(anyPorts);
    await first.line("serving");
    const second = site.run(anyPorts);
    expect(await second.ended).toBe(1);
    expect(second.lines.at(-1)).toMatchObject({ level: "fatal", msg: expect.stringContaining("AMQP_DATA_DIR") });
    first.signal("SIGTERM");
    expect(await first.ended).toBe(0);
  });

  it("where NATS_SERVER_BIN will not do", async () => {
    expect(await failure([...anyPorts], { NATS_SERVER_BIN: "/bin/true" })).toContain("NATS_SERVER_BIN=/bin/true is no");
  });
});
