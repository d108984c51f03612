/**
 * Which process a number means. A number alone is reused: after a crash, another process may have it. Together with the
 * moment the process started it names one process for as long as the machine is up. Used by claim.ts for the holder of
 * a data folder and for a nats-server that outlived its gateway.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** One process of this machine. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in whatever form this system tells it; empty where it does not. */
  readonly started: string;
}

/** The process that has this number now, or undefined where none has. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  if (!exists(pid)) return undefined;
  try {
    return { pid, started: process.platform === "linux" ? startedOnLinux(pid) : startedByPs(pid) };
  } catch {
    return exists(pid) ? { pid, started: "" } : undefined;
  }
}

/** Does the process still run, and is it that one? Where the system tells no start, the number has to do. */
export function stillRuns(identity: ProcessIdentity): boolean {
  const now = identityOf(identity.pid);
  return now !== undefined && now.started === identity.started;
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Field 22 of stat counts clock ticks since the boot that boot_id names; the command before it may hold blanks. */
function startedOnLinux(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z") throw new Error("a zombie has ended");
  return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${fields[19]}`;
}

function startedByPs(pid: number): string {
  return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", timeout: 5_000 }).trim();
}
