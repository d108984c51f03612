/** The embedded server: a real nats-server, killed, blocked and left behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identityOf, stillRuns } from "../src/embedded/identity.ts";
import { EmbeddedServer } from "../src/embedded.ts";
import { createLog, type Logger } from "../src/log.ts";
import { findNatsServer } from "../src/nats-server.ts";

let folder: string;
let lines: string[];
let log: Logger;
let running: EmbeddedServer[];
const { path: binary } = await findNatsServer();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "embedded-"));
  lines = [];
  running = [];
  log = createLog("trace", { write: (line) => lines.push(line) });
});
afterEach(async () => {
  await Promise.all(running.map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
});

async function start(options: { port?: number; dataDir?: string; delay?: number } = {}): Promise<EmbeddedServer> {
  const server = await EmbeddedServer.start({
    binary,
    port: 0,
    dataDir: join(folder, "data"),
    log,
    delay: 10,
    ...options,
  });
  running.push(server);
  return server;
}

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  for (let waited = 0; !(await what()); waited += 10) {
    if (waited > 10_000) throw new Error("it never came");
    await sleep(10);
  }
}

async function withServer(server: EmbeddedServer, use: (connection: NatsConnection) => Promise<void>): Promise<void> {
  const connection = await connect({ servers: server.url });
  try {
    await use(connection);
  } finally {
    await connection.close();
  }
}

/** Tries to take the port. */
function listens(server: Server, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => resolve(true));
  });
}

describe("a start", () => {
  it("serves JetStream on the loopback address with a payload of 8 MiB, and says when it syncs", async () => {
    const server = await start();
    const connection = await connect({ servers: server.url });
    expect(connection.info).toMatchObject({ max_payload: 8 * 1024 * 1024, host: "127.0.0.1", port: server.port });
    await expect(jetstreamManager(connection)).resolves.toBeDefined();
    await connection.close();
    expect(lines.join("")).toContain("sync_interval");
  });

  it("is refused where the port is taken, with the remedy, and leaves nothing behind", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const refused = start({ port });
    await expect(refused).rejects.toThrow(
      `port ${port} on 127.0.0.1 is taken, so the embedded nats-server cannot start: set NATS_URL`,
    );
    await expect(refused).rejects.toThrow("AMQP_NATS_PORT");
    other.close();
    await once(other, "close");
    expect((await start({ port })).port).toBe(port);
  });

  it("is refused where another gateway uses the data folder, and granted once it stopped", async () => {
    const first = await start();
    await expect(start()).rejects.toThrow(
      /data folder .* is in use by the gateway with process number \d+: .*AMQP_DATA_DIR/,
    );
    await first.stop();
    await start();
  });

  it("is refused where the data folder cannot be made", async () => {
    writeFileSync(join(folder, "file"), "");
    await expect(start({ dataDir: join(folder, "file", "data") })).rejects.toThrow(/cannot be used .*AMQP_DATA_DIR/);
  });

  it("takes over the folder of a gateway that was killed, and stops the server that one left behind", async () => {
    const dataDir = join(folder, "data");
    const module = new URL("../src/embedded.ts", import.meta.url).href;
    const script = `
      const { EmbeddedServer } = await import(${JSON.stringify(module)});
      const { createLog } = await import(${JSON.stringify(new URL("../src/log.ts", import.meta.url).href)});
      const [binary, dataDir] = process.argv.slice(-2);
      const server = await EmbeddedServer.start({ binary, port: 0, dataDir, log: createLog("silent") });
      console.log(server.pid);
      setInterval(() => {}, 1000);`;
    const flags = ["--experimental-strip-types", "--no-warnings", "--input-type=module", "-e", script];
    const gateway: ChildProcess = spawn(process.execPath, [...flags, binary, dataDir], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [output] = (await once(gateway.stdout ?? gateway, "data")) as [Buffer];
    const left = identityOf(Number(output.toString()));
    gateway.kill("SIGKILL");
    await once(gateway, "exit");
    if (left === undefined) throw new Error("the server did not outlive its gateway");
    expect(stillRuns(left)).toBe(true);
    const server = await start({ dataDir });
    expect(stillRuns(left)).toBe(false);
    expect(server.pid).not.toBe(left.pid);
  });

  it("does not mistake another process with the same number for a holder", async () => {
    const dataDir = join(folder, "data");
    const first = await start({ dataDir });
    const claim = JSON.parse(readFileSync(join(dataDir, "gateway.pid"), "utf8")) as { pid: number; started: string };
    await first.stop();
    writeFileSync(join(dataDir, "gateway.pid"), JSON.stringify({ ...claim, started: "another time" }));
    writeFileSync(join(dataDir, "nats-server.pid"), JSON.stringify({ pid: process.pid, started: "another time" }));
    await start({ dataDir });
  });
});

describe("a death", () => {
  it("is answered by a restart on the same port, over the same store, as often as it takes", async () => {
    const server = await start();
    const { port } = server;
    await withServer(server, async (connection) => {
      await (await jetstreamManager(connection)).streams.add({ name: "KEPT", subjects: ["kept"] });
      await jetstream(connection).publish("kept", "before");
    });
    for (let death = 0; death < 3; death += 1) {
      const { pid } = server;
      process.kill(pid, "SIGKILL");
      await until(() => server.pid !== pid);
      expect(server.port).toBe(port);
    }
    await withServer(server, async (connection) => {
      expect((await (await jetstreamManager(connection)).streams.info("KEPT")).state.messages).toBe(1);
    });
    expect(lines.filter((line) => line.includes("starting it again in"))).toHaveLength(3);
  });

  it("waits longer each time while the port is another's, and comes back when it is free", async () => {
    const server = await start({ delay: 200 });
    const { port, pid } = server;
    process.kill(pid, "SIGKILL");
    const thief = createServer();
    await until(() => listens(thief, port));
    await until(() => lines.filter((line) => line.includes("does not start again")).length >= 2);
    thief.close();
    await until(() => server.pid !== pid);
    expect(server.port).toBe(port);
  });
});

describe("a stop", () => {
  it("ends the process, once for any number of calls, and restarts nothing", async () => {
    const server = await start();
    const process_ = identityOf(server.pid);
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    expect(process_ && stillRuns(process_)).toBe(false);
    await sleep(100);
    expect(lines.join("")).not.toContain("starting it again");
  });

  it("during a restart leaves no process", async () => {
    const server = await start({ delay: 1 });
    process.kill(server.pid, "SIGKILL");
    await until(() => lines.some((line) => line.includes("starting it again")));
    await server.stop();
    const last = identityOf(server.pid);
    expect(last && stillRuns(last)).toBeFalsy();
  });
});
