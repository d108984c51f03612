/** What `npm start` and `npm test` pass on: exit codes and signals, each to a real child of a real process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, it } from "vitest";

const root = new URL("../../", import.meta.url);
const child = new URL("scripts/child.mjs", root).href;
const started: ChildProcess[] = [];

afterEach(() => {
  for (const process of started) process.kill("SIGKILL");
});

/** A process that runs `program` as its child and ends with what `run` gave. */
function parent(program: string, options: object = {}): ChildProcess {
  const script = `
    const { run } = await import(${JSON.stringify(child)});
    process.exitCode = await run(process.execPath, ["-e", ${JSON.stringify(program)}], ${JSON.stringify(options)});`;
  const process_ = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(process_);
  return process_;
}

/** Says that it is there, and each signal it gets; ends with code 7 at SIGTERM and 8 at SIGHUP. */
const LISTENER = `
  for (const [name, code] of [["SIGINT", 0], ["SIGTERM", 7], ["SIGHUP", 8]])
    process.on(name, () => { console.log(name); if (code) process.exit(code); });
  setInterval(() => {}, 1000);
  console.log("ready");`;

async function listening(options: object): Promise<{ process: ChildProcess; said: string[] }> {
  const process = parent(LISTENER, options);
  const said: string[] = [];
  if (process.stdout === null) throw new Error("no output");
  const lines = createInterface({ input: process.stdout }).on("line", (line) => said.push(line));
  await once(lines, "line");
  return { process, said };
}

describe("exit codes", () => {
  it.each([
    ["process.exit(0)", 0],
    ["process.exit(3)", 3],
    ["process.kill(process.pid, 'SIGKILL')", 137],
  ])("%s ends the parent with %i", async (program, code) => {
    expect(await once(parent(program), "close")).toEqual([code, null]);
  });
});

describe("signals", () => {
  it.each([
    ["SIGTERM", 7],
    ["SIGHUP", 8],
  ] as const)("%s reaches the child, whose exit code is ours", async (signal, code) => {
    const { process, said } = await listening({});
    process.kill(signal);
    expect(await once(process, "close")).toEqual([code, null]);
    expect(said).toEqual(["ready", signal]);
  });

  it("SIGINT is not sent twice: the terminal has sent it to the child already", async () => {
    const { process, said } = await listening({});
    process.kill("SIGINT");
    process.kill("SIGTERM");
    await once(process, "close");
    expect(said).toEqual(["ready", "SIGTERM"]);
  });

  it("SIGINT is sent where the child may get it any number of times", async () => {
    const { process, said } = await listening({ forwardInterrupt: true });
    process.kill("SIGINT");
    while (!said.includes("SIGINT")) await new Promise(setImmediate);
    process.kill("SIGTERM");
    expect(await once(process, "close")).toEqual([7, null]);
  });

  it("npm's shell stands in the way of none: every script of the root is an exec", () => {
    const { scripts } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { scripts: object };
    for (const [name, script] of Object.entries(scripts)) expect(script).toBe(`exec node scripts/run.mjs ${name}`);
  });
});
