// How much memory a process takes, asked of the system. The hostile tests hold the gateway to a bound while it is
// attacked. Separate because the question has another answer on each system.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

/** The resident set of a process in MiB. */
export function residentMiB(pid: number): number {
  const status = `/proc/${pid}/status`;
  const kib = existsSync(status)
    ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(status, "utf8"))?.[1]
    : execFileSync("ps", ["-o", "rss=", "-p", `${pid}`], { encoding: "utf8" }).trim();
  if (kib === undefined) throw new Error(`process ${pid} has no resident set`);
  return Number(kib) / 1024;
}

/** Runs something and resolves with the most that the process took meanwhile beyond what it took before, in MiB. */
export async function growthDuring(pid: number, work: () => Promise<void>): Promise<number> {
  const before = residentMiB(pid);
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, residentMiB(pid));
  }, 50);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return Math.max(most, residentMiB(pid)) - before;
}
