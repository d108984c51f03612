// What the harness has started and must take away: child processes and temporary folders.
// gateway.ts and nats-server.ts register here; target.ts and tests call `releaseAll` in an afterAll, and the exit hook
// does the same without waiting where a test file ends early. Separate so that no starter needs its own clean-up.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const processes: Set<ChildProcess> = new Set();
const orphans: Set<number> = new Set();
const folders: Set<string> = new Set();

process.once("exit", () => {
  for (const child of processes) child.kill("SIGKILL");
  for (const pid of orphans) killOrphan(pid);
  for (const folder of folders) removeFolder(folder);
});

/** A new temporary folder, gone after {@link releaseAll} or when this process exits. */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${prefix}-`));
  folders.add(folder);
  return folder;
}

/** Removes a folder and forgets it. */
export function removeFolder(folder: string): void {
  folders.delete(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/** The child is killed by {@link releaseAll} or at exit, unless it ended before. */
export function own(child: ChildProcess): void {
  processes.add(child);
  child.once("exit", () => processes.delete(child));
}

/** A process that a child of ours started and may leave behind: killed by {@link releaseAll} or at exit. */
export function ownOrphan(pid: number): void {
  orphans.add(pid);
}

/** Kills such a process where it still runs, and forgets it. */
export function killOrphan(pid: number): void {
  if (!orphans.delete(pid)) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** Forgets such a process: who started it has stopped it. */
export function disownOrphan(pid: number): void {
  orphans.delete(pid);
}

/** Resolves when the child has exited; at once where it already has. */
export async function exited(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  await once(child, "exit");
}

/**
 * Sends the signal and waits for the exit; SIGKILL where that takes longer than `patience` milliseconds.
 *
 * @returns whether the child ended by itself, without SIGKILL by force.
 */
export async function endProcess(child: ChildProcess, signal: NodeJS.Signals, patience = 15_000): Promise<boolean> {
  const gone = exited(child);
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  let forced = false;
  const timer = setTimeout(() => {
    forced = true;
    child.kill("SIGKILL");
  }, patience);
  await gone;
  clearTimeout(timer);
  return !forced;
}

/** Ends every process of this harness and removes every folder: gateways first get the chance to stop in order. */
export async function releaseAll(): Promise<void> {
  await Promise.all([...processes].map((child) => endProcess(child, "SIGTERM", 5_000)));
  for (const pid of orphans) killOrphan(pid);
  for (const folder of folders) removeFolder(folder);
}
