// A real nats-server with JetStream as a child process: the bus of tests that need it apart from a gateway.
// Used by e2e/crosswire and by tests of outages (kill, restart). Separate from gateway.ts: here the bus outlives or
// dies without the gateway.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endProcess, exited, own, removeFolder, temporaryFolder } from "./owned.ts";

/** How to start a nats-server. */
export interface NatsOptions {
  /** A fixed port; by default any free one. */
  readonly port?: number;
  /** JetStream's store; by default a temporary folder. */
  readonly storeDir?: string;
  /** Lines of configuration (max_payload, authorization, …). */
  readonly conf?: string;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A running nats-server. */
export interface NatsServer {
  /** `nats://127.0.0.1:<port>`; the same after a restart. */
  readonly url: string;
  readonly port: number;
  readonly storeDir: string;
  readonly pid: number;
  /** By default SIGKILL, as a crash; resolves with the exit. The store stays. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Kills what runs and starts again on the same port and store. */
  restart(): Promise<void>;
  /** Stops in order and removes what is temporary. */
  stop(): Promise<void>;
}

/** Starts nats-server on 127.0.0.1 with JetStream and waits until it takes connections. */
export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const folder = temporaryFolder("nats-server");
  const storeDir = options.storeDir ?? join(folder, "store");
  const configuration = join(folder, "nats.conf");
  writeFileSync(configuration, `${options.conf ?? ""}\n`);
  let port = options.port ?? -1;
  let child = await launch();

  async function launch(): Promise<ChildProcess> {
    const flags = ["-c", configuration, "-a", "127.0.0.1", "-p", `${port}`, "-js", "-sd", storeDir];
    const started = spawn(binary(), [...flags, "--ports_file_dir", folder], {
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    own(started);
    let log = "";
    started.stderr.on("data", (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-10_000);
    });
    const file = await portsFile(started, folder);
    if (file === undefined) throw new Error(`nats-server does not start; its log:\n${log}`);
    const { nats } = JSON.parse(file) as { nats: string[] };
    port = Number(new URL(nats[0] ?? "").port);
    return started;
  }

  return {
    get url() {
      return `nats://127.0.0.1:${port}`;
    },
    get port() {
      return port;
    },
    get pid() {
      return child.pid ?? 0;
    },
    storeDir,
    kill: async (signal = "SIGKILL") => {
      child.kill(signal);
      await exited(child);
    },
    restart: async () => {
      await endProcess(child, "SIGKILL");
      child = await launch();
    },
    stop: async () => {
      await endProcess(child, "SIGTERM");
      removeFolder(folder);
    },
  };
}

function binary(): string {
  const path = process.env.NATS_SERVER_BIN;
  if (path === undefined || !existsSync(path)) {
    throw new Error("NATS_SERVER_BIN does not name a nats-server; `npm test` sets it");
  }
  return path;
}

/** The ports file of this process once it is whole; undefined where the process ends or takes over ten seconds. */
async function portsFile(child: ChildProcess, folder: string): Promise<string | undefined> {
  for (let waited = 0; waited < 10_000 && child.exitCode === null && child.signalCode === null; waited += 20) {
    const name = readdirSync(folder).find((each) => each.endsWith(`_${child.pid}.ports`));
    const text = name === undefined ? "" : readFileSync(join(folder, name), "utf8");
    if (name !== undefined && text.trimEnd().endsWith("}")) {
      rmSync(join(folder, name), { force: true });
      return text;
    }
    await sleep(20);
  }
  return undefined;
}
