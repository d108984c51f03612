/**
 * A real nats-server and a bus on it, for the tests of this folder.
 *
 * Used by: every test here. Separate because each of them kills, restarts and watches the same things.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import type { BusListener, Incoming, PublishOutcome, PublishSink, PullSink } from "../../src/core/bus.ts";
import type { Log } from "../../src/core/log.ts";
import { type JetStreamBus, openBus } from "../../src/nats/bus.ts";
import type { BusOptions } from "../../src/nats/bus-options.ts";

const BINARY = process.env.NATS_SERVER_BIN ?? "nats-server";
const MIB = 1024 * 1024;

/** None outlives its test, whatever became of it. */
const running: Set<ChildProcess> = new Set();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export class NatsServer {
  readonly #directory: string;
  readonly #config: string;
  #process: ChildProcess | undefined;
  port = 0;

  private constructor(directory: string, config: string) {
    this.#directory = directory;
    this.#config = config;
  }

  /** JetStream is off where `domain` is null; the empty one is none. */
  static async start(extra = "", domain: string | null = ""): Promise<NatsServer> {
    const directory = await mkdtemp(join(tmpdir(), "bus-"));
    const named = domain === "" ? "" : `domain: ${domain}`;
    const jetstream = domain === null ? "" : `jetstream { store_dir: "${join(directory, "js")}", ${named} }`;
    const server = new NatsServer(directory, `max_payload: ${8 * MIB}\n${jetstream}\n${extra}\n`);
    server.port = await freePort();
    await server.run();
    return server;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** Starts (again) on the same port and store. */
  async run(): Promise<void> {
    const config = join(this.#directory, "nats.conf");
    const ports = await mkdtemp(join(this.#directory, "ports-"));
    await writeFile(config, `${this.#config}\nport: ${this.port}\nhost: "127.0.0.1"\nports_file_dir: "${ports}"\n`);
    const child = spawn(BINARY, ["-c", config], { stdio: ["ignore", "ignore", "pipe"] });
    this.#process = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-2_000);
    });
    for (let i = 0; i < 400; i++) {
      const [file] = (await readdir(ports)).filter((name) => name.endsWith(".ports"));
      if (file !== undefined && (await readFile(join(ports, file), "utf8")).length > 0) return;
      if (child.exitCode !== null) throw new Error(`nats-server: ${said}`);
      await sleep(25);
    }
    throw new Error(`nats-server did not start: ${said}`);
  }

  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  freeze(): void {
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#process?.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async connect(options: object = {}): Promise<NatsConnection> {
    return await connect({
      servers: this.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectDelayHandler: () => 50,
      ...options,
    });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Writes down what the bus says of its health. */
export class Told implements BusListener {
  readonly events: string[] = [];
  away(): void {
    this.events.push("away");
  }
  back(restarted: boolean): void {
    this.events.push(`back ${restarted}`);
  }
  full(full: boolean): void {
    this.events.push(`full ${full}`);
  }
  room(): void {
    this.events.push("room");
  }
  stalled(stalled: boolean): void {
    this.events.push(`stalled ${stalled}`);
  }
}

export class Lines implements Log {
  readonly lines: string[] = [];
  debug = (_: object, line: string): void => void this.lines.push(`debug ${line}`);
  info = (_: object, line: string): void => void this.lines.push(`info ${line}`);
  warn = (_: object, line: string): void => void this.lines.push(`warn ${line}`);
  error = (_: object, line: string): void => void this.lines.push(`error ${line}`);
}

export interface Opened {
  readonly bus: JetStreamBus;
  readonly told: Told;
  readonly log: Lines;
  readonly publishing: NatsConnection;
  readonly delivering: NatsConnection;
  close(): Promise<void>;
}

export async function open(server: NatsServer, options: Partial<BusOptions> = {}): Promise<Opened> {
  const [publishing, delivering] = [await server.connect(), await server.connect()];
  const told = new Told();
  const log = new Lines();
  const close = async (): Promise<void> => {
    await publishing.close();
    await delivering.close();
  };
  try {
    const bus = await openBus({
      publishing,
      delivering,
      stream: "AMQP",
      root: "amqp",
      listener: told,
      log,
      ...options,
    });
    return {
      bus,
      told,
      log,
      publishing,
      delivering,
      close: async () => {
        await bus.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Counts what became of publishes. */
export class Outcomes implements PublishSink {
  readonly of: Map<number, PublishOutcome> = new Map();
  twice = 0;
  published(tag: number, outcome: PublishOutcome): void {
    if (this.of.has(tag)) this.twice++;
    this.of.set(tag, outcome);
  }
  count(outcome: PublishOutcome): number {
    let count = 0;
    for (const each of this.of.values()) if (each === outcome) count++;
    return count;
  }
}

/** Keeps what a pull brings. */
export class Pulled implements PullSink {
  readonly messages: Incoming[] = [];
  readonly ends: { readonly missing: number; readonly why: string }[] = [];
  onMessage: (message: Incoming) => void = () => {};
  onEnd: (missing: number, why: string) => void = () => {};
  message(message: Incoming): void {
    this.messages.push(message);
    this.onMessage(message);
  }
  ended(missing: number, why: "empty" | "expired" | "gone" | "lost"): void {
    this.ends.push({ missing, why });
    this.onEnd(missing, why);
  }
}

export const NONE: Uint8Array = new Uint8Array(2);

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function text(octets: Uint8Array): string {
  return new TextDecoder().decode(octets);
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Waits until it is true, at most so long. */
export async function until(condition: () => boolean | Promise<boolean>, milliseconds = 10_000): Promise<void> {
  const end = Date.now() + milliseconds;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${milliseconds} ms: ${condition}`);
    await sleep(5);
  }
}

/** Publishes so many numbered messages and waits for every answer. */
export async function fill(bus: JetStreamBus, subject: string, count: number, size = 8): Promise<void> {
  const outcomes = new Outcomes();
  for (let i = 0; i < count; i++) {
    if (!bus.room) await until(() => bus.room);
    bus.publish(subject, NONE, [bytes(String(i).padStart(size, "0"))], outcomes, i);
  }
  await until(() => outcomes.of.size === count, 30_000);
  if (outcomes.count("stored") !== count) throw new Error("not everything was stored");
}
