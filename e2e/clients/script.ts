// Runs a script of another language against the target and reads the checks that it prints, a JSON line each.
// Used by the tests of Python and PHP clients. Separate because it knows processes, and the tests know libraries.
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { startProxy } from "../harness/proxy.ts";
import { target } from "../harness/target.ts";

/** One check of a script. */
export interface Check {
  readonly check: string;
  readonly ok: boolean;
  readonly detail?: string;
}

/** What a script printed, and how it ended. */
export interface ScriptResult {
  readonly checks: readonly Check[];
  readonly code: number | null;
  readonly stderr: string;
}

/**
 * Why the script's library cannot be tried here, or undefined where it can: `command` must succeed.
 * `AMQP_CLIENTS_REQUIRED=1` (as in CI) makes a missing library an error instead of a reason to skip.
 */
export function missing(library: string, command: readonly [string, ...string[]]): string | undefined {
  const [program, ...args] = command;
  const { status } = spawnSync(program, args, { stdio: "ignore" });
  if (status === 0) return undefined;
  const reason = `${library} is not installed: \`${command.join(" ")}\` fails`;
  if (process.env.AMQP_CLIENTS_REQUIRED === "1") throw new Error(reason);
  console.warn(`SKIPPED: ${reason}`);
  return reason;
}

/** Runs the script; a line `{"cut": true}` resets the connections of the proxy whose port it was given. */
export async function runScript(program: string, file: string): Promise<ScriptResult> {
  const { url, host, port } = await target();
  const proxy = await startProxy(host, port);
  const environment = { AMQP_URL: `${url}//`, AMQP_HOST: host, AMQP_PORT: `${port}`, AMQP_PROXY_PORT: `${proxy.port}` };
  const child = spawn(program, [fileURLToPath(new URL(file, import.meta.url))], {
    env: { ...process.env, ...environment, PYTHONDONTWRITEBYTECODE: "1" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
  const checks: Check[] = [];
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  createInterface({ input: child.stdout }).on("line", (text) => {
    if (!text.startsWith("{")) return;
    const line = JSON.parse(text) as Check | { readonly cut: true };
    if ("cut" in line) proxy.cut();
    else checks.push(line);
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  await proxy.close();
  return { checks, code, stderr };
}
