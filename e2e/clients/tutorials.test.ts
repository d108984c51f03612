// RabbitMQ's tutorials 1 to 6 as a user writes them: real programs, each in a process of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { target } from "../harness/target.ts";
import { exchangeName, queueName, until } from "./session.ts";

const running: Set<ChildProcess> = new Set();

afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
});

interface Program {
  /** The lines that it printed. */
  readonly lines: readonly string[];
  /** Interrupts it (CTRL+C), or kills it; resolves with its exit code. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

interface Started {
  readonly child: ChildProcess;
  readonly lines: readonly string[];
  readonly closed: Promise<number | null>;
}

async function launch(env: Record<string, string>, file: string, args: readonly string[]): Promise<Started> {
  const { url } = await target();
  const path = fileURLToPath(new URL(`tutorials/${file}.mjs`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], {
    env: { ...process.env, AMQP_URL: url, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const closed = once(child, "close").then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  return { child, lines, closed };
}

/** Starts a program and waits for its first line: it is ready then. */
async function start(env: Record<string, string>, file: string, ...args: string[]): Promise<Program> {
  const { child, lines, closed } = await launch(env, file, args);
  await until(() => lines.some((line) => /Waiting|Awaiting/.test(line)), 15_000);
  return {
    lines,
    end: async (signal = "SIGINT") => {
      child.kill(signal);
      return await closed;
    },
  };
}

/** Runs a program to its end and returns its lines. */
async function run(env: Record<string, string>, file: string, ...args: string[]): Promise<readonly string[]> {
  const { lines, closed } = await launch(env, file, args);
  expect(await closed, `${file} ${args.join(" ")}`).toBe(0);
  return lines;
}

it("1: hello world, sent before and after the receiver came", async () => {
  const env = { QUEUE: queueName() };
  expect(await run(env, "send")).toEqual([" [x] Sent 'Hello World!'"]);
  const receiver = await start(env, "receive");
  await run(env, "send", "again");
  await until(() => receiver.lines.length === 3);
  expect(receiver.lines.filter((line) => line.includes("Received"))).toEqual([
    " [x] Received 'Hello World!'",
    " [x] Received 'again'",
  ]);
  expect(await receiver.end()).toBe(0);
});

it("2: work is shared, and the work of a killed worker is done by another", async () => {
  const env = { QUEUE: queueName() };
  const [first, second] = await Promise.all([start(env, "worker"), start(env, "worker")]);
  for (const task of ["1.", "2.", "3.", "4."]) await run(env, "new-task", task);
  const done = () => [...first.lines, ...second.lines].filter((line) => line.includes("Done"));
  await until(() => done().length === 4, 10_000);
  expect(first.lines.length).toBeGreaterThan(1);
  expect(second.lines.length).toBeGreaterThan(1);

  await second.end("SIGKILL");
  await run(env, "new-task", `long${".".repeat(100)}`);
  await until(() => first.lines.at(-1)?.includes("Received 'long") ?? false);
  const third = await start(env, "worker");
  await first.end("SIGKILL");
  await until(() => third.lines.some((line) => line.includes("Received 'long")), 10_000);
  await third.end("SIGKILL");
});

it("3: everyone who listens hears everything, from then on", async () => {
  const env = { EXCHANGE: exchangeName() };
  await run(env, "emit-log", "nobody hears this");
  const [first, second] = await Promise.all([start(env, "receive-logs"), start(env, "receive-logs")]);
  await run(env, "emit-log", "to all");
  await until(() => first.lines.length === 2 && second.lines.length === 2);
  expect(first.lines[1]).toBe(" [x] to all");
  expect(second.lines[1]).toBe(" [x] to all");
  await Promise.all([first.end(), second.end()]);
});

it("4: each hears the severities it asked for", async () => {
  const env = { EXCHANGE: exchangeName() };
  const [errors, all] = await Promise.all([
    start(env, "receive-logs-direct", "error"),
    start(env, "receive-logs-direct", "info", "warning", "error"),
  ]);
  for (const severity of ["info", "warning", "error", "debug"]) await run(env, "emit-log-direct", severity, "text");
  await until(() => all.lines.length === 4 && errors.lines.length === 2);
  expect(errors.lines[1]).toBe(" [x] error:'text'");
  expect(all.lines.slice(1)).toEqual([" [x] info:'text'", " [x] warning:'text'", " [x] error:'text'"]);
  await Promise.all([errors.end(), all.end()]);
});

it("5: topics, and one copy where bindings overlap", async () => {
  const env = { EXCHANGE: exchangeName() };
  const [everything, kernel, both] = await Promise.all([
    start(env, "receive-logs-topic", "#"),
    start(env, "receive-logs-topic", "kern.*"),
    start(env, "receive-logs-topic", "kern.*", "*.critical"),
  ]);
  const keys = ["kern.critical", "kern.info", "cron.critical", "cron.info", "kern", "a.b.c"];
  for (const key of keys) await run(env, "emit-log-topic", key, "text");
  const heard = ({ lines }: Program) => lines.slice(1).map((line) => line.replace(/^ \[x\] (.*):'text'$/, "$1"));
  await until(() => everything.lines.length === 7 && kernel.lines.length === 3 && both.lines.length === 4);
  expect(heard(everything)).toEqual(keys);
  expect(heard(kernel)).toEqual(["kern.critical", "kern.info"]);
  expect(heard(both)).toEqual(["kern.critical", "kern.info", "cron.critical"]);
  await Promise.all([everything.end(), kernel.end(), both.end()]);
});

it("6: calls over an exclusive reply queue, several at a time", async () => {
  const env = { QUEUE: queueName() };
  const server = await start(env, "rpc-server");
  const answers = await Promise.all(["0", "10", "20"].map((n) => run(env, "rpc-client", n)));
  expect(answers.map((lines) => lines.at(-1))).toEqual([" [.] Got 0", " [.] Got 55", " [.] Got 6765"]);
  await server.end();
});
