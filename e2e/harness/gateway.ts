// The built product as a child process: what `npm start` runs, on free ports and a data folder of its own.
// The suites of e2e/ use it wherever the behaviour of the whole counts (boot, crash, restart). Separate from target.ts,
// which only asks "where is a broker to test".
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { disownOrphan, endProcess, killOrphan, own, ownOrphan, removeFolder, temporaryFolder } from "./owned.ts";

const BIN = fileURLToPath(new URL("../../apps/gateway/bin/amqp-gateway.js", import.meta.url));
const SERVING = "serving AMQP 0-9-1";
const EMBEDDED = "embedded nats-server runs";

/** How to start a gateway. */
export interface GatewayOptions {
  /** Added to the environment; `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Further flags, after those of the harness: the later one counts. */
  readonly args?: readonly string[];
  /** An existing data folder (after a crash, say); by default a temporary one that goes with the gateway. */
  readonly dataDir?: string;
  /** Milliseconds until it has to serve. */
  readonly timeout?: number;
}

/** One line of its log: the fields of a JSON line, or the text alone. */
export interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** How a child ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A gateway that serves. */
export interface Gateway {
  /** `amqp://guest:guest@127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  /** The first address of its bus. */
  readonly natsUrl: string;
  readonly pid: number;
  readonly dataDir: string;
  /** Everything logged so far, growing. */
  readonly lines: readonly LogLine[];
  readonly exited: Promise<Exit>;
  /** SIGTERM, wait for the exit, remove a temporary data folder. Again: nothing. */
  stop(): Promise<void>;
  /** Any signal to the gateway alone; resolves with its exit. The data folder stays until `stop` or releaseAll. */
  kill(signal: NodeJS.Signals): Promise<Exit>;
  /** SIGKILL for the gateway and its embedded nats-server. */
  crash(): Promise<void>;
}

/** What a gateway that did not come to serve has left. */
export interface FailedBoot extends Exit {
  readonly lines: readonly LogLine[];
}

/** Starts a gateway and waits until it logs that it serves; throws with its log where it exits or dawdles. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const dataDir = options.dataDir ?? temporaryFolder("amqp-gateway");
  const { child, lines, embedded, exited, serving } = launch(options, dataDir);
  const timeout = AbortSignal.timeout(options.timeout ?? 30_000);
  const late = once(timeout, "abort").then(() => undefined);
  const line = await Promise.race([serving, exited.then(() => undefined), late]);
  if (line === undefined || child.pid === undefined) {
    await endProcess(child, "SIGKILL");
    throw new Error(`the gateway does not serve; its log:\n${lines.map((each) => JSON.stringify(each)).join("\n")}`);
  }
  const port = line.port as number;
  const [natsUrl = ""] = line.bus as string[];
  return {
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    port,
    natsUrl,
    pid: child.pid,
    dataDir,
    lines,
    exited,
    stop: async () => {
      if (await endProcess(child, "SIGTERM")) for (const pid of embedded) disownOrphan(pid);
      else for (const pid of embedded) killOrphan(pid);
      if (options.dataDir === undefined) removeFolder(dataDir);
    },
    kill: async (signal) => {
      child.kill(signal);
      return await exited;
    },
    crash: async () => {
      child.kill("SIGKILL");
      for (const pid of embedded) killOrphan(pid);
      await exited;
    },
  };
}

/** Starts a gateway that is expected to refuse; throws where it serves after all. */
export async function failToStart(
  options: GatewayOptions & { readonly signalAfter?: number } = {},
): Promise<FailedBoot> {
  const dataDir = options.dataDir ?? temporaryFolder("amqp-gateway");
  const { child, lines, exited, serving } = launch(options, dataDir);
  const { signalAfter } = options;
  if (signalAfter !== undefined) setTimeout(() => child.kill("SIGTERM"), signalAfter).unref();
  const first = await Promise.race([serving.then(() => undefined), exited]);
  if (first === undefined) {
    await endProcess(child, "SIGKILL");
    throw new Error("the gateway serves where it was expected to refuse");
  }
  if (options.dataDir === undefined) removeFolder(dataDir);
  return { ...first, lines };
}

interface Launch {
  readonly child: ChildProcess;
  readonly lines: readonly LogLine[];
  /** The embedded nats-servers that it started. */
  readonly embedded: ReadonlySet<number>;
  readonly exited: Promise<Exit>;
  readonly serving: Promise<LogLine>;
}

function launch(options: GatewayOptions, dataDir: string): Launch {
  const flags = ["--port", "0", "--nats-port", "0", "--data-dir", dataDir, ...(options.args ?? [])];
  const child = spawn(process.execPath, [BIN, ...flags], {
    env: { ...process.env, LOG_LEVEL: "debug", ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  own(child);
  const lines: LogLine[] = [];
  const embedded: Set<number> = new Set();
  const exited = new Promise<Exit>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  const serving = new Promise<LogLine>((resolve) => {
    const take = (text: string): void => {
      const line = parseLine(text);
      lines.push(line);
      if (line.msg.startsWith(EMBEDDED) && typeof line.pid === "number") {
        embedded.add(line.pid);
        ownOrphan(line.pid);
      }
      if (line.msg.startsWith(SERVING)) resolve(line);
    };
    createInterface({ input: child.stdout }).on("line", take);
    createInterface({ input: child.stderr }).on("line", take);
  });
  return { child, lines, embedded, exited, serving };
}

function parseLine(text: string): LogLine {
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields === "object" && fields !== null) return { msg: "", ...fields };
  } catch {
    // Not JSON: --help, a stack, a line of nats-server.
  }
  return { msg: text };
}
