// What processes use: CPU seconds, resident memory, and who descends from whom, read from /proc.
// Used by targets (the gateway's workers and its nats-server count with it) and by the rows that amqpload does not measure.
// Separate because it is the one place that needs Linux.
import { readdirSync, readFileSync } from "node:fs";

/** A process and everything it started. */
export function familyOf(pid: number): number[] {
  const family = [pid];
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (stat !== undefined) parents.set(Number(name), Number(stat[1]));
  }
  for (let i = 0; i < family.length; i++) {
    for (const [child, parent] of parents) if (parent === family[i]) family.push(child);
  }
  return family;
}

/** CPU seconds that they have used together, user and system. */
export function cpuSeconds(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const stat = readStat(pid);
    ticks += stat === undefined ? 0 : Number(stat[11]) + Number(stat[12]);
  }
  return ticks / 100;
}

/** Resident memory in KiB. */
export function residentKib(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}

/** The fields of /proc/<pid>/stat behind the name: state, parent, … */
function readStat(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined; // it has ended
  }
}
