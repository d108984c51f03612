/**
 * Workers: several processes that share the port (node:cluster), each an ordinary replica on one bus. This file is the
 * parent's side: it starts them, replaces one that dies after a growing delay, and stops them all. worker.ts is theirs.
 * Used by boot.ts. Separate because one process alone needs none of it.
 *
 *     starting ──serving──► serving ──exited──► waiting ──delay over──► starting      stop(): from each ──► stopped
 *
 * The first one starts alone: what boot refuses is one line then, and the stream and the bucket are made once. A first
 * start that fails is a boot failure; a later one is tried for ever.
 */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ConfigOnBus, Served } from "./boot.ts";
import { BootError } from "./boot-error.ts";
import type { Logger } from "./log.ts";
import { fixPorts } from "./ports.ts";
import type { Steps } from "./steps.ts";

/** What a worker says: it may be told what to be, it serves, or it cannot. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "serving" }
  | { readonly kind: "refused"; readonly text: string };

/** What a worker is told. */
export type ToWorker =
  | { readonly kind: "serve"; readonly config: ConfigOnBus; readonly name: string }
  | { readonly kind: "reload" }
  | { readonly kind: "stop" };

/** The first delay before a worker is replaced, and the longest, in milliseconds. */
const DELAY = 100;
const LONGEST_DELAY = 10_000;
/** After this long a run counts as good, in milliseconds: the next death is replaced soon again. */
const GOOD_RUN = 30_000;
/** How long the workers may take to stop, in milliseconds: their own steps and some. */
const PATIENCE = 20_000;

/** Starts the workers; the bus runs. */
export async function bootWorkers(config: ConfigOnBus, log: Logger, steps: Steps): Promise<Served> {
  // The same ports for all, and for those that come later.
  const { port, tlsPort } = await fixPorts(config);
  const tls = config.tls && { ...config.tls, port: tlsPort ?? 0 };
  // The source and the compiled file have the same name.
  const exec = fileURLToPath(
    new URL(`./worker${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`, import.meta.url),
  );
  cluster.setupPrimary({ exec, args: [], serialization: "advanced" });
  const workers = Array.from(
    { length: config.workers },
    (_, number) => new Place(`${number + 1}`, { ...config, port, tls }, log),
  );
  const [first, ...others] = workers;
  const started = await steps.take(
    async () => first?.start(),
    () => Promise.all(workers.map((worker) => worker.stop())),
    PATIENCE + 1000,
  );
  if (started !== undefined) throw started;
  const refused = (await steps.take(() => Promise.all(others.map((worker) => worker.start())))).find(Boolean);
  if (refused !== undefined) throw refused;
  const reload = async (): Promise<void> => {
    for (const worker of workers) worker.reload();
  };
  return { port, tlsPort, reload, lost: new Promise(() => {}) };
}

/** One of the workers: the process that has this place now, or its successor. */
class Place {
  readonly #name: string;
  readonly #config: ConfigOnBus;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  #worker: Worker | undefined;
  #kept: Promise<void> | undefined;

  constructor(name: string, config: ConfigOnBus, log: Logger) {
    this.#name = name;
    this.#config = config;
    this.#log = log;
  }

  /** Resolves when it serves, or to why it does not. */
  async start(): Promise<Error | undefined> {
    const { exited, serving } = this.#fork();
    const refused = await serving;
    if (refused === undefined) this.#kept = this.#keep(exited);
    return refused;
  }

  /** Asks it to read its certificate again; one that starts reads it anyway. */
  reload(): void {
    if (this.#worker?.isConnected()) this.#worker.send({ kind: "reload" } satisfies ToWorker);
  }

  /** Asks it to stop, and kills it where it does not. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const worker = this.#worker;
    if (worker !== undefined && !worker.isDead()) {
      const exited = once(worker, "exit");
      if (worker.isConnected()) worker.send({ kind: "stop" } satisfies ToWorker);
      const late = setTimeout(() => {
        this.#log.error({ worker: this.#name }, "a worker does not stop: killing it");
        worker.process.kill("SIGKILL");
      }, PATIENCE);
      await exited;
      clearTimeout(late);
    }
    await this.#kept;
  }

  /** Has it replaced whenever it ends, until it is to stop. */
  async #keep(exited: Promise<string>): Promise<void> {
    const { signal } = this.#stopping;
    let delay = 0;
    let since = Date.now();
    for (;;) {
      const how = await exited;
      if (signal.aborted) return;
      delay = Date.now() - since > GOOD_RUN || delay === 0 ? DELAY : Math.min(delay * 2, LONGEST_DELAY);
      this.#log.warn({ worker: this.#name, delay }, `worker ${this.#name} ${how}: starting another one in ${delay} ms`);
      await sleep(delay, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      since = Date.now();
      const next = this.#fork();
      exited = next.exited;
      void next.serving.then((refused) => {
        if (signal.aborted) return;
        if (refused === undefined) this.#log.info({ worker: this.#name }, `worker ${this.#name} serves again`);
        else this.#log.error({ worker: this.#name }, `worker ${this.#name} does not start again: ${refused.message}`);
      });
    }
  }

  #fork(): { readonly exited: Promise<string>; readonly serving: Promise<Error | undefined> } {
    const worker = cluster.fork();
    this.#worker = worker;
    const exited = new Promise<string>((resolve) => {
      worker.once("exit", (code, signal) => resolve(signal ? `was ended by ${signal}` : `ended with code ${code}`));
    });
    const serving = new Promise<Error | undefined>((resolve) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          worker.send({ kind: "serve", config: this.#config, name: this.#name } satisfies ToWorker);
        } else resolve(message.kind === "serving" ? undefined : new BootError(message.text));
      });
      void exited.then((how) => resolve(new BootError(`worker ${this.#name} ${how} before it served`)));
    });
    // An answer to a worker that has just died: its exit says so.
    worker.on("error", (error) => this.#log.debug({ err: error, worker: this.#name }, "a worker was not reached"));
    this.#log.debug({ worker: this.#name, pid: worker.process.pid }, `worker ${this.#name} starts`);
    return { exited, serving };
  }
}
