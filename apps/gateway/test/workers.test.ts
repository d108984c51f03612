/**
 * Workers as real processes: one port, one bus, one line that says it serves; one that dies is replaced, a stop drains
 * all of them. What the replicas agree on is tested in e2e/replicas.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { identityOf } from "../src/embedded/identity.ts";
import { accepts, type Program } from "./program.ts";
import { Site } from "./site.ts";

const site = new Site("workers");

function run(args: readonly string[]): Program {
  return site.run(["--port", "0", "--nats-port", "0", "--workers", "2", ...args]);
}

const workersOf = (program: Program): number[] =>
  program.lines.flatMap(({ msg, pid }) => (/^worker \d serves$/.test(msg) && pid !== undefined ? [pid] : []));

// Each start is three processes from their sources: what can share one does.
describe("--workers 2", { timeout: 120_000 }, () => {
  it("is two processes on one port; one that dies is replaced, later each time; a stop drains all", async () => {
    const program = run([]);
    const line = await program.line("serving AMQP");
    const { port = 0, bus: [bus] = [] } = line;
    expect(line).toMatchObject({ level: "info", host: "127.0.0.1", embedded: true, workers: 2 });
    expect(line.msg).toBe(`serving AMQP 0-9-1 on 127.0.0.1:${port}, bus ${bus} (embedded), 2 workers`);
    expect(program.lines.filter(({ msg }) => msg.startsWith("serving"))).toHaveLength(1);
    expect(program.lines.filter(({ msg }) => msg.startsWith("embedded nats-server runs"))).toHaveLength(1);
    expect(new Set([...workersOf(program), program.pid]).size).toBe(3);
    expect(await accepts(port)).toBe(true);

    for (const delay of [100, 200]) {
      const before = program.lines.length;
      process.kill(workersOf(program).at(-1) ?? 0, "SIGKILL");
      await program.line(`was ended by SIGKILL: starting another one in ${delay} ms`, before);
      expect(await accepts(port)).toBe(true);
      await program.line("serves again", before);
    }
    // Both of them: the port is the same one when they are back.
    const before = program.lines.length;
    for (const pid of workersOf(program).filter((each) => identityOf(each) !== undefined)) process.kill(pid, "SIGKILL");
    await program.line("worker 1 serves again", before);
    await program.line("worker 2 serves again", before);
    expect(await accepts(port)).toBe(true);

    const { pid: server = 0 } = await program.line("embedded nats-server runs");
    // A signal to the whole group: a worker waits for its parent's word.
    for (const pid of workersOf(program).filter((each) => identityOf(each) !== undefined)) process.kill(pid, "SIGTERM");
    program.signal("SIGTERM");
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
    for (const pid of [...workersOf(program), server]) expect(identityOf(pid)).toBeUndefined();
    expect(await accepts(port)).toBe(false);
    expect(program.lines.filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
  });

  it("closes its port while the bus stays away, and opens it again", async () => {
    const program = run(["--bus-timeout", "1"]);
    const { port = 0 } = await program.line("serving AMQP");
    // Killed as soon as it is back it comes later each time, up to some seconds.
    for (let round = 0; round < 6; round++) {
      const before = program.lines.length;
      const last = program.lines.findLast(({ msg }) => msg.startsWith("embedded nats-server runs"));
      process.kill(last?.pid ?? 0, "SIGKILL");
      await program.line("embedded nats-server runs again", before);
    }
    expect(program.lines.filter(({ msg }) => msg.startsWith("the port is closed")).length).toBeGreaterThanOrEqual(2);
    await expect.poll(() => accepts(port), { timeout: 30_000 }).toBe(true);
  });

  it("stops while it boots, and leaves nothing", async () => {
    const program = run([]);
    const { pid = 0 } = await program.line("embedded nats-server runs");
    await sleep(150);
    program.signal("SIGINT");
    expect(await program.ended).toBe(0);
    expect(identityOf(pid)).toBeUndefined();
  });

  it("refuses in one line what one process refuses, and leaves no worker behind when the parent is killed", async () => {
    const program = run([]);
    const { port = 0 } = await program.line("serving AMQP");
    const refused = run(["--port", `${port}`, "--data-dir", join(site.folder, "second")]);
    expect(await refused.ended).toBe(1);
    const fatal = refused.lines.filter(({ level }) => level === "fatal");
    expect(fatal.map(({ msg }) => msg)).toEqual([expect.stringMatching(`^port ${port} on 127.0.0.1 is taken: stop`)]);
    const workers = workersOf(program);
    program.signal("SIGKILL");
    await program.ended;
    await expect.poll(() => workers.filter((pid) => identityOf(pid) !== undefined), { timeout: 10_000 }).toEqual([]);
  });
});
