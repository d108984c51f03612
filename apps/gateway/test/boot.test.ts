/**
 * The program itself: run from its sources as a process of its own, for exit codes, signals and what it leaves behind
 * are what is tested. A step of boot that fails is one fatal line with a remedy, exit code 1, and nothing left.
 */
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identityOf, stillRuns } from "../src/embedded/identity.ts";
import { type Serving, serveNats } from "../src/embedded/process.ts";
import { createLog } from "../src/log.ts";
import { findNatsServer } from "../src/nats-server.ts";
import { accepts, Program } from "./program.ts";

const { path: binary } = await findNatsServer();
let folder: string;
let programs: Program[];
let servers: Serving[];
let listeners: Server[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "boot-"));
  programs = [];
  servers = [];
  listeners = [];
});
afterEach(async () => {
  for (const program of programs) program.kill();
  for (const server of servers) server.signal("SIGKILL");
  for (const listener of listeners) listener.close();
  await Promise.all([...programs.map(({ ended }) => ended), ...servers.map(({ ended }) => ended)]);
  rmSync(folder, { recursive: true, force: true });
});

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
  const own = { HOME: folder, NATS_SERVER_BIN: binary, AMQP_DATA_DIR: join(folder, "data") };
  const program = new Program(args, { ...own, ...env });
  programs.push(program);
  return program;
}

const anyPorts = ["--port", "0", "--nats-port", "0"] as const;

/** A nats-server with these lines of configuration; gives its address. */
async function serve(...configuration: readonly string[]): Promise<string> {
  const file = join(folder, "nats-server.conf");
  const store = `jetstream { store_dir: ${JSON.stringify(join(folder, "store"))} }`;
  writeFileSync(
    file,
    ['host: "127.0.0.1"', "port: -1", ...(configuration.length > 0 ? configuration : [store]), ""].join("\n"),
  );
  const server = await serveNats(binary, file, folder, createLog("silent"), () => {});
  servers.push(server);
  return `nats://127.0.0.1:${server.port}`;
}

/** The same server, killed, once more. */
async function serveAgain(url: string): Promise<void> {
  const file = join(folder, "nats-server.conf");
  writeFileSync(file, readFileSync(file, "utf8").replace("port: -1", `port: ${new URL(url).port}`));
  servers.push(await serveNats(binary, file, folder, createLog("silent"), () => {}));
}

async function occupiedPort(answer = ""): Promise<number> {
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (data) => data.includes("PING") && socket.write("PONG\r\n"));
    socket.write(answer);
  });
  listeners.push(listener);
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return (listener.address() as AddressInfo).port;
}

/** Runs it to its failure; gives the one line it dies with. */
async function failure(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const program = run(args, env);
  const serves = program.line("serving AMQP").catch(() => undefined);
  expect(await Promise.race([program.ended, serves]), program.text).toBe(1);
  const fatal = program.lines.filter(({ level }) => level === "fatal");
  expect(fatal, program.text).toHaveLength(1);
  expect(program.text).not.toContain("serving AMQP");
  expect(program.text).not.toContain("hunter2");
  expect(existsSync(join(folder, "data", "nats-server.pid"))).toBe(false);
  return fatal[0]?.msg ?? "";
}

describe("a gateway that serves", () => {
  it("says so in one line with its address and its bus, and accepts", async () => {
    const program = run(anyPorts);
    const line = await program.line("serving AMQP 0-9-1 on 127.0.0.1:");
    const [bus = ""] = line.bus ?? [];
    expect(line).toMatchObject({ level: "info", host: "127.0.0.1", embedded: true });
    expect(line.msg).toBe(`serving AMQP 0-9-1 on 127.0.0.1:${line.port}, bus ${bus} (embedded)`);
    expect(await accepts(line.port ?? 0)).toBe(true);
  });

  it("uses the bus it is given, and shows no credential of it at any level", async () => {
    const url = await serve(
      `jetstream { store_dir: ${JSON.stringify(join(folder, "store"))} }`,
      'authorization { user: "ada", password: "hunter2" }',
    );
    const program = run(["--port", "0"], { NATS_URL: url.replace("//", "//ada:hunter2@"), LOG_LEVEL: "trace" });
    expect(await program.line("serving")).toMatchObject({ bus: [url], embedded: false });
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(program.text).not.toContain("hunter2");
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "stops on %s, however often it comes, and leaves nothing",
    async (signal) => {
      const program = run(anyPorts);
      const { port } = await program.line("serving");
      const { pid } = await program.line("embedded nats-server runs");
      const server = identityOf(pid ?? 0);
      for (let time = 0; time < 3; time += 1) {
        program.signal(signal);
        await sleep(5);
      }
      expect(await program.ended).toBe(0);
      expect(server && stillRuns(server)).toBe(false);
      expect(await accepts(port ?? 0)).toBe(false);
      expect(program.lines.filter(({ msg }) => msg.includes("stopping"))).toHaveLength(1);
    },
  );

  it("stops while it boots, and leaves nothing", async () => {
    const program = run(anyPorts);
    const { pid } = await program.line("embedded nats-server runs");
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(identityOf(pid ?? 0)).toBeUndefined();
  });

  it("has its embedded server again when that was killed", async () => {
    const program = run(anyPorts);
    const { port } = await program.line("serving");
    const { pid } = await program.line("embedded nats-server runs on");
    process.kill(pid ?? 0, "SIGKILL");
    await program.line("embedded nats-server runs again");
    await program.line("the bus is back");
    expect(await accepts(port ?? 0)).toBe(true);
  });
});

describe("a gateway whose topology is gone", () => {
  it("serves nobody any more, and ends with exit code 1 and one line", async () => {
    const url = await serve();
    const program = run(["--port", "0", "--nats-url", url]);
    const { port = 0 } = await program.line("serving");
    const connection = await connect({ servers: url });
    await (await jetstreamManager(connection)).streams.delete("KV_amqp");
    await connection.close();
    expect(await program.ended).toBe(1);
    const fatal = program.lines.filter(({ level }) => level === "fatal");
    expect(fatal.map(({ msg }) => msg)).toEqual([
      "the gateway can serve no more: the bucket's stream was deleted: start it again",
    ]);
    expect(await accepts(port)).toBe(false);
  });
});

describe("a bus that stays away", () => {
  it("closes the port, which a readiness check sees, and opens it when it is back", async () => {
    const url = await serve();
    const program = run(["--port", "0", "--nats-url", url, "--bus-timeout", "1"]);
    const { port = 0 } = await program.line("serving");
    expect(await accepts(port)).toBe(true);
    servers[0]?.signal("SIGKILL");
    await program.line("the port is closed");
    expect(await accepts(port)).toBe(false);
    await serveAgain(url);
    await program.line("the port is open again");
    expect(await accepts(port)).toBe(true);
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
  });

  it("does not keep a gateway from stopping", async () => {
    const url = await serve();
    const program = run(["--port", "0", "--nats-url", url, "--bus-timeout", "1"]);
    await program.line("serving");
    servers[0]?.signal("SIGKILL");
    await program.line("the port is closed");
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
  });
});

describe("the command line", () => {
  it("answers --version and --help", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    const [asked, helped] = [run(["--version"]), run(["--help"])];
    expect(await asked.ended).toBe(0);
    expect(asked.text.trim()).toBe(version);
    expect(await helped.ended).toBe(0);
    expect(helped.text).toContain("--nats-url");
  });

  it.each([
    [["--prot", "1"], "--prot"],
    [["--port", "many"], "--port"],
    [["--host", "0.0.0.0"], "AMQP_ALLOW_ANONYMOUS"],
  ])("refuses %j in one line", async (args, named) => {
    const program = run(args);
    expect(await program.ended).toBe(1);
    expect(program.text.trim().split("\n")).toEqual([expect.stringContaining(named)]);
  });
});

describe("boot fails closed", () => {
  it("where the bus cannot be reached", async () => {
    const url = await serve();
    servers[0]?.signal("SIGTERM");
    await servers[0]?.ended;
    expect(await failure(["--port", "0", "--nats-url", url])).toMatch(
      /cannot be reached .*: start it, correct NATS_URL/,
    );
  });

  it("where the server is too old", async () => {
    const port = await occupiedPort(
      'INFO {"server_id":"OLD","version":"2.9.10","proto":1,"max_payload":1048576,"headers":true}\r\n',
    );
    const line = await failure(["--port", "0", "--nats-url", `nats://127.0.0.1:${port}`]);
    expect(line).toContain("nats-server 2.9.10, too old: upgrade it");
  });

  it("where JetStream is off", async () => {
    const line = await failure(["--port", "0", "--nats-url", await serve("debug: false")]);
    expect(line).toMatch(/JetStream is off .*: start nats-server with -js/);
  });

  it("where the stream is somebody else's", async () => {
    const url = await serve();
    const connection = await connect({ servers: url });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "AMQP", subjects: ["amqp.>"], retention: RetentionPolicy.Limits });
    await connection.close();
    const line = await failure(["--port", "0", "--nats-url", url]);
    expect(line).toContain("AMQP");
    expect(line).toMatch(/retention.*AMQP_STREAM/);
  });

  it("where the bucket is somebody else's", async () => {
    const url = await serve();
    const connection = await connect({ servers: url });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "KV_amqp", subjects: ["$KV.amqp.>"], storage: StorageType.Memory });
    await connection.close();
    expect(await failure(["--port", "0", "--nats-url", url])).toMatch(/bucket.*amqp/);
  });

  it("where the login may not do it", async () => {
    const user = '{ user: "ada", password: "hunter2", permissions: { publish: ["$JS.API.INFO"], subscribe: [">"] } }';
    const url = await serve(
      `jetstream { store_dir: ${JSON.stringify(join(folder, "store"))} }`,
      `authorization { users: [${user}] }`,
    );
    const env = { NATS_URL: url, NATS_USER: "ada", NATS_PASSWORD: "hunter2" };
    expect(await failure(["--port", "0"], env)).toMatch(/permi.*(grant|allow)/);
  });

  it("where the port is taken, and what was started before is stopped", async () => {
    const port = await occupiedPort();
    const line = await failure(["--port", String(port), "--nats-port", "0"]);
    expect(line).toBe(
      `port ${port} on 127.0.0.1 is taken: stop what listens there, or set CLOUD_AMQP_PORT to another port (0 takes any free one)`,
    );
  });

  it("where the embedded server's port is taken", async () => {
    const port = await occupiedPort();
    const line = await failure(["--port", "0", "--nats-port", String(port)]);
    expect(line).toMatch(/is taken, .*: set NATS_URL .* or AMQP_NATS_PORT/);
  });

  it("where the data folder is another gateway's", async () => {
    const first = run(anyPorts);
    await first.line("serving");
    const second = run(anyPorts);
    expect(await second.ended).toBe(1);
    expect(second.lines.at(-1)).toMatchObject({ level: "fatal", msg: expect.stringContaining("AMQP_DATA_DIR") });
    first.signal("SIGTERM");
    expect(await first.ended).toBe(0);
  });

  it("where NATS_SERVER_BIN will not do", async () => {
    expect(await failure([...anyPorts], { NATS_SERVER_BIN: "/bin/true" })).toContain("NATS_SERVER_BIN=/bin/true is no");
  });
});
