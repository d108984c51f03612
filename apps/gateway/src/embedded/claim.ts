/**
 * The claim on a data folder: two nats-servers on one store destroy it, and nats-server itself does not look. A gateway
 * claims its folder by a file that names its process, gone when it stops and void when that process is. A second file
 * names the nats-server, which goes on running when its gateway is killed: the next gateway stops it before it starts
 * its own. Used by embedded.ts alone.
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BootError } from "../boot-error.ts";
import type { Logger } from "../log.ts";
import { identityOf, type ProcessIdentity, stillRuns } from "./identity.ts";

/** A data folder that belongs to this process until it is released. */
export interface Claim {
  /** Remembers the nats-server that runs on this folder. */
  remember(pid: number): void;
  /** Gives the folder free. */
  release(): void;
}

/** How long a nats-server left behind may take to stop by itself, in milliseconds. */
const PATIENCE = 10_000;

/** Claims `folder`, made where it is missing, and stops a nats-server that an earlier gateway left on it. */
export async function claimFolder(folder: string, log: Logger): Promise<Claim> {
  const holderFile = join(folder, "gateway.pid");
  const serverFile = join(folder, "nats-server.pid");
  const remedy = "set AMQP_DATA_DIR to a folder that can be written";
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    take(holderFile, folder);
  } catch (error) {
    if (error instanceof BootError) throw error;
    throw new BootError(`the data folder ${folder} cannot be used (${String(error)})`, remedy);
  }
  await stopLeftBehind(serverFile, log);
  return {
    remember: (pid) => write(serverFile, identityOf(pid)),
    release: () => {
      rmSync(serverFile, { force: true });
      rmSync(holderFile, { force: true });
    },
  };
}

/** A link is made by one process or by none; the name of a holder that is gone is moved away first. */
function take(file: string, folder: string): void {
  const mine = `${file}.${process.pid}`;
  write(mine, identityOf(process.pid));
  try {
    for (let attempt = 0; attempt < 10; attempt += 1) {
      try {
        linkSync(mine, file);
        return;
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      }
      const holder = read(file);
      if (holder !== undefined && stillRuns(holder)) {
        throw new BootError(
          `the data folder ${folder} is in use by the gateway with process number ${holder.pid}`,
          "stop that one, or set AMQP_DATA_DIR to another folder, or NATS_URL to the server it runs",
        );
      }
      void setAside(file, holder);
    }
    throw new Error("another process keeps claiming it");
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Moves a void claim away; what another process claimed in the meantime is put back. */
function setAside(file: string, holder: ProcessIdentity | undefined): void {
  const aside = `${file}.void.${process.pid}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  const moved = read(aside);
  if (moved?.pid !== holder?.pid || moved?.started !== holder?.started) {
    try {
      linkSync(aside, file);
    } catch {
      // A third process claimed it: that claim stands.
    }
  }
  rmSync(aside, { force: true });
}

async function stopLeftBehind(file: string, log: Logger): Promise<void> {
  const server = read(file);
  // Without a start to tell it by, the number may by now be anybody's: leave it alone.
  if (server !== undefined && server.started !== "" && stillRuns(server)) {
    log.warn({ pid: server.pid }, "stopping the nats-server that an earlier gateway left behind");
    process.kill(server.pid, "SIGTERM");
    for (let waited = 0; waited < PATIENCE && stillRuns(server); waited += 50) await sleep(50);
    if (stillRuns(server)) process.kill(server.pid, "SIGKILL");
    while (stillRuns(server)) await sleep(50);
  }
  rmSync(file, { force: true });
}

function write(file: string, identity: ProcessIdentity | undefined): void {
  if (identity !== undefined) writeFileSync(file, JSON.stringify(identity));
}

function read(file: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value !== "object" || value === null || !("pid" in value) || !("started" in value)) return undefined;
    const { pid, started } = value;
    return typeof pid === "number" && pid > 0 && typeof started === "string" ? { pid, started } : undefined;
  } catch {
    return undefined;
  }
}
