/**
 * One run of the nats-server process: started, ready, ended. It is started in a process group of its own, for Ctrl-C
 * goes to the whole group and would stop the bus under the gateway that is still draining into it. What it says goes to
 * the log: at debug, and at warn what it says as a warning or an error. Used by embedded.ts, which starts it again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../log.ts";

/** How a run ended. */
export interface Ended {
  /** `ended with code 1` or `was ended by SIGKILL` */
  readonly how: string;
  /** Its last lines of complaint, oldest first. */
  readonly complaints: readonly string[];
}

/** A nats-server that takes connections. */
export interface Serving {
  readonly pid: number;
  readonly port: number;
  readonly ended: Promise<Ended>;
  signal(name: NodeJS.Signals): void;
}

/** A run that ended before it was ready. */
export class NeverReady extends Error {
  readonly complaints: readonly string[];

  constructor(ended: Ended) {
    super(`nats-server ${ended.how}${ended.complaints.length > 0 ? ` (${ended.complaints.join("; ")})` : ""}`);
    this.complaints = ended.complaints;
  }

  /** Did it end because its port is another's? */
  get portTaken(): boolean {
    return this.complaints.some((line) => /address already in use|Only one usage of each socket/.test(line));
  }
}

/** How many complaints are kept. */
const KEPT = 5;

/**
 * Starts `binary` with the configuration `configFile` and waits until it takes connections.
 * @param portsFolder where it writes the port it took
 * @param started told the process number at once, before it is ready
 * @throws NeverReady
 */
export async function serveNats(
  binary: string,
  configFile: string,
  portsFolder: string,
  log: Logger,
  started: (pid: number) => void,
): Promise<Serving> {
  removePorts(portsFolder);
  const child = spawn(binary, ["-c", configFile, "--ports_file_dir", portsFolder], {
    detached: true,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const complaints: string[] = [];
  const ready = new Promise<"ready">((resolve) => listen(child, log, complaints, () => resolve("ready")));
  const ended = endOf(child, complaints);
  if (child.pid !== undefined) started(child.pid);
  const first = await Promise.race([ready, ended]);
  if (first !== "ready" || child.pid === undefined) throw new NeverReady(await ended);
  const port = await readPort(portsFolder, child.pid, ended);
  return { pid: child.pid, port, ended, signal: (name) => child.kill(name) };
}

function listen(child: ChildProcess, log: Logger, complaints: string[], isReady: () => void): void {
  if (child.stderr === null) return;
  createInterface({ input: child.stderr }).on("line", (line) => {
    const [, level = "", text = line] = /^\[\d+\] \S+ \S+ \[(\w+)\] (.*)$/.exec(line) ?? [];
    if (level === "INF" || level === "DBG" || level === "TRC") {
      log.debug({ from: "nats-server" }, text);
      if (text === "Server is ready") isReady();
      return;
    }
    log.warn({ from: "nats-server" }, text);
    complaints.push(text);
    if (complaints.length > KEPT) complaints.shift();
  });
}

function endOf(child: ChildProcess, complaints: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ how: `cannot be run (${error.message})`, complaints }));
    child.once("close", (code, signal) => {
      resolve({ how: signal === null ? `ended with code ${code}` : `was ended by ${signal}`, complaints });
    });
  });
}

/** The ports file, `nats-server_<pid>.ports`, is written a moment after the server is ready. */
async function readPort(folder: string, pid: number, ended: Promise<Ended>): Promise<number> {
  let over: Ended | undefined;
  void ended.then((how) => {
    over = how;
  });
  for (;;) {
    const file = portsFiles(folder).find((name) => name.endsWith(`_${pid}.ports`));
    const port = file === undefined ? undefined : portIn(join(folder, file));
    if (port !== undefined) return port;
    if (over !== undefined) throw new NeverReady(over);
    await sleep(5);
  }
}

/** Undefined too while the file is half written. */
function portIn(file: string): number | undefined {
  try {
    const { nats } = JSON.parse(readFileSync(file, "utf8")) as { readonly nats?: readonly string[] };
    return Number(URL.parse(nats?.[0] ?? "")?.port) || undefined;
  } catch {
    return undefined;
  }
}

function portsFiles(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => name.endsWith(".ports"));
}

/** A server that was killed leaves its file. */
function removePorts(folder: string): void {
  for (const name of portsFiles(folder)) rmSync(join(folder, name), { force: true });
}
