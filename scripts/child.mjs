/**
 * Child processes as run.mjs needs them: output goes straight through, the child's exit code becomes ours, and signals
 * reach it once. Ctrl-C goes to the whole foreground group by itself, so SIGINT is forwarded only to a child that may
 * get it twice; SIGTERM and SIGHUP are sent to one process and are passed on. Used by every other module here.
 */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import process from "node:process";

/** The repository's root, where every command runs. */
export const root = new URL("../", import.meta.url);

/** A step that ended with a code other than 0: the error run.mjs ends with, with the same code. */
export class StepError extends Error {
  constructor(message, exitCode) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Runs `command` to its end and gives its exit code (128 + the signal's number when a signal ended it).
 * @param {{env?: object, forwardInterrupt?: boolean, stdio?: import("node:child_process").StdioOptions,
 *   started?: (child: import("node:child_process").ChildProcess) => void}} options
 * @returns {Promise<number>}
 */
export function run(command, args, options = {}) {
  const { env = process.env, forwardInterrupt = false, stdio = "inherit", started = () => {} } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio });
    started(child);
    const listeners = ["SIGINT", "SIGTERM", "SIGHUP"].map((signal) => {
      const listener = () => {
        if (signal !== "SIGINT" || forwardInterrupt) child.kill(signal);
      };
      process.on(signal, listener);
      return [signal, listener];
    });
    const forget = () => {
      for (const [signal, listener] of listeners) process.off(signal, listener);
    };
    child.once("error", (error) => {
      forget();
      reject(new Error(`${command} cannot be run: ${error.message}`));
    });
    child.once("close", (code, signal) => {
      forget();
      resolve(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });
}

/**
 * Runs a step that must succeed. Its output goes to standard error, which leaves standard output to what was asked for;
 * `quiet`, only where it failed.
 */
export async function step(what, command, args, env, { quiet = false } = {}) {
  const said = [];
  const hear = (child) => {
    child.stdout.on("data", (data) => said.push(data));
    child.stderr.on("data", (data) => said.push(data));
  };
  const how = quiet ? { stdio: ["ignore", "pipe", "pipe"], started: hear } : { stdio: ["ignore", 2, 2] };
  const code = await run(command, args, { env, ...how });
  if (code === 0) return;
  process.stderr.write(Buffer.concat(said));
  throw new StepError(`${what} failed (${command} ended with code ${code})`, code);
}
