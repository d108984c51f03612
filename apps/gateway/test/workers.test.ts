/**
 * Workers as real processes: one port, one bus, one line that says it serves; one that dies is replaced, a stop drains
 * all of them. What the replicas agree on is tested in e2e/replicas.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identityOf } from "../src/embedded/identity.ts";
import { findNatsServer } from "../src/nats-server.ts";
import { accepts, Program } from "./program.ts";

const { path: binary } = await findNatsServer();
let folder: string;
let programs: Program[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "workers-"));
  programs = [];
});
afterEach(async () => {
  for (const program of programs) program.kill();
  await Promise.all(programs.map(({ ended }) => ended));
  rmSync(folder, { recursive: true, force: true });
});

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
  const own = { HOME: folder, NATS_SERVER_BIN: binary, AMQP_DATA_DIR: join(folder, "data") };
  const program = new Program(["--port", "0", "--nats-port", "0", "--workers", "2", ...args], { ...own, ...env });
  programs.push(program);
  return program;
}

const workersOf = (program: Program): number[] =>
  program.lines.flatMap(({ msg, pid }) => (/^worker \d serves$/.test(msg) && pid !== undefined ? [pid] : []));

describe("--workers 2", () => {
  it("is two processes on one port over one bus, said in one line", async () => {
    const program = run([]);
    const line = await program.line("serving AMQP");
    const [bus = ""] = line.bus ?? [];
    expect(line).toMatchObject({ level: "info", host: "127.0.0.1", embedded: true, workers: 2 });
    expect(line.msg).toBe(`serving AMQP 0-9-1 on 127.0.0.1:${line.port}, bus ${bus} (embedded), 2 workers`);
    expect(program.lines.filter(({ msg }) => msg.startsWith("serving"))).toHaveLength(1);
    expect(program.lines.filter(({ msg }) => msg.startsWith("embedded nats-server runs"))).toHaveLength(1);
    const workers = workersOf(program);
    expect(new Set([...workers, program.pid]).size).toBe(3);
    expect(await accepts(line.port ?? 0)).toBe(true);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("stops all on %s to the whole group, and leaves nothing", async (signal) => {
    const program = run([]);
    const { port = 0 } = await program.line("serving AMQP");
    const { pid: server = 0 } = await program.line("embedded nats-server runs");
    const workers = workersOf(program);
    // Ctrl-C goes to the whole group: a worker waits for its parent's word.
    for (const pid of workers) process.kill(pid, signal);
    program.signal(signal);
    program.signal(signal);
    expect(await program.ended).toBe(0);
    for (const pid of [...workers, server]) expect(identityOf(pid)).toBeUndefined();
    expect(await accepts(port)).toBe(false);
    expect(program.lines.filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
  });

  it("replaces one that dies, later each time, on the same port", async () => {
    const program = run([]);
    const { port = 0 } = await program.line("serving AMQP");
    for (const delay of [100, 200]) {
      const before = program.lines.length;
      process.kill(workersOf(program).at(-1) ?? 0, "SIGKILL");
      await program.line(`was ended by SIGKILL: starting another one in ${delay} ms`, before);
      expect(await accepts(port)).toBe(true);
      await program.line("serves again", before);
    }
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
  });

  it("serves again on the same port when all of them died", async () => {
    const program = run([]);
    const { port = 0 } = await program.line("serving AMQP");
    for (const pid of workersOf(program)) process.kill(pid, "SIGKILL");
    await program.line("serves again");
    expect(await accepts(port)).toBe(true);
  });

  it("stops while it boots, and leaves nothing", async () => {
    const program = run([]);
    const { pid = 0 } = await program.line("embedded nats-server runs");
    await sleep(150);
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(identityOf(pid)).toBeUndefined();
  });

  it("leaves no worker behind when the parent is killed", async () => {
    const program = run([]);
    await program.line("serving AMQP");
    const workers = workersOf(program);
    program.signal("SIGKILL");
    await program.ended;
    await expect.poll(() => workers.filter((pid) => identityOf(pid) !== undefined), { timeout: 5000 }).toEqual([]);
  });

  it("refuses in one line what one process refuses", async () => {
    const other = run([]);
    const { port = 0 } = await other.line("serving AMQP");
    const program = run(["--port", `${port}`, "--data-dir", join(folder, "second")]);
    expect(await program.ended).toBe(1);
    const fatal = program.lines.filter(({ level }) => level === "fatal");
    expect(fatal.map(({ msg }) => msg)).toEqual([expect.stringMatching(`^port ${port} on 127.0.0.1 is taken: stop`)]);
  });

  it("closes its port while the bus stays away, and opens it again", async () => {
    const program = run(["--bus-timeout", "1"], { PATH: process.env.PATH });
    const { port = 0 } = await program.line("serving AMQP");
    const { pid = 0 } = await program.line("embedded nats-server runs");
    // Stopped, it answers nobody: its clients notice by their pings. Killed often, it takes longer to come back each time.
    for (let round = 0; round < 6; round++) {
      const last = program.lines.findLast(({ msg }) => msg.startsWith("embedded nats-server runs"));
      process.kill(last?.pid ?? pid, "SIGKILL");
      const before = program.lines.length;
      await program.line("embedded nats-server runs again", before);
    }
    const closed = program.lines.filter(({ msg }) => msg.startsWith("the port is closed")).length;
    expect(closed).toBeGreaterThanOrEqual(2);
    await expect.poll(() => accepts(port), { timeout: 10_000 }).toBe(true);
  });
});
