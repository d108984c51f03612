/**
 * A command of the system run to its end, for the sources that fetch: quiet, bounded in time, and its failure is one
 * line. Used by debian.ts, release.ts and the finder.
 */
import { execFile } from "node:child_process";

/** How a command is run. `timeout` in milliseconds, two minutes where it is not said. */
export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly timeout?: number;
}

/** Gives what the command wrote on standard output; throws with its last line of complaint. */
export function command(name: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { cwd, env = process.env, timeout = 120_000 } = options;
  return new Promise((resolve, reject) => {
    const settings = { cwd, timeout, env: { ...env, LC_ALL: "C" }, maxBuffer: 64 * 1024 * 1024 };
    execFile(name, [...args], settings, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      if (error.code === "ENOENT") return reject(new Error(`${name} is not here`));
      const complaint = stderr.trim().split("\n").at(-1) || (error.killed ? "took too long" : error.message);
      return reject(new Error(`${name}: ${complaint}`));
    });
  });
}
