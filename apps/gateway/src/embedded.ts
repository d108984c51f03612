/**
 * The embedded bus: a nats-server of the gateway's own on the loopback address, for whoever has no NATS yet. It keeps its
 * messages in the data folder, is started again when it dies (on the same port, over the same store), and stops with the
 * gateway. boot.ts starts it before it connects; to all else it is a server like any other.
 *
 *     starting ──ready──► serving ──ended──► waiting ──delay over──► starting      stop(): from each ──► stopped
 *
 * A first start that fails is a boot failure; a later one is tried for ever, with a growing delay.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BootError } from "./boot-error.ts";
import { type Claim, claimFolder } from "./embedded/claim.ts";
import { NeverReady, type Serving, serveNats } from "./embedded/process.ts";
import type { Logger } from "./log.ts";

/** What an embedded server is started with. */
export interface EmbeddedOptions {
  /** The nats-server, as the finder gave it. */
  readonly binary: string;
  /** 0 takes any free one, and keeps it through restarts. */
  readonly port: number;
  readonly dataDir: string;
  readonly log: Logger;
  /** The first delay before a restart in milliseconds; it doubles up to 50 times that. Default 100. */
  readonly delay?: number;
}

const HOST = "127.0.0.1";
/** What one message may hold, in octets: body and properties (the server's own default is 1 MiB). */
const MAX_PAYLOAD = 8 * 1024 * 1024;
/** How often the store is synced to disk. What was confirmed since survives a killed process, not a power cut. */
const SYNC_INTERVAL = "2m";
/** After this long a run counts as good, in milliseconds: the next death is restarted at once again. */
const GOOD_RUN = 30_000;
/** How long it may take to stop by itself, in milliseconds. */
const PATIENCE = 8_000;

/** A nats-server that runs until `stop`. */
export class EmbeddedServer {
  readonly #options: EmbeddedOptions;
  readonly #claim: Claim;
  readonly #configFile: string;
  readonly #stopping = new AbortController();
  #serving: Serving;
  #stopped: Promise<void> | undefined;
  readonly #kept: Promise<void>;

  private constructor(options: EmbeddedOptions, claim: Claim, configFile: string, serving: Serving) {
    this.#options = options;
    this.#claim = claim;
    this.#configFile = configFile;
    this.#serving = serving;
    this.#kept = this.#keep();
  }

  /**
   * Claims the data folder and starts the server.
   * @throws BootError where the folder or the port is another's, or the server does not start
   */
  static async start(options: EmbeddedOptions): Promise<EmbeddedServer> {
    const { port, dataDir, log, binary } = options;
    const claim = await claimFolder(dataDir, log);
    try {
      const configFile = configure(dataDir, port);
      const serving = await serveNats(binary, configFile, dataDir, log, claim.remember);
      log.info(
        { port: serving.port, pid: serving.pid, dataDir, syncInterval: SYNC_INTERVAL },
        `embedded nats-server runs on ${HOST}:${serving.port}, store ${dataDir}, synced to disk every ${SYNC_INTERVAL} ` +
          "(sync_interval): what is confirmed survives a crash of either process, not a power cut in that time",
      );
      return new EmbeddedServer(options, claim, configFile, serving);
    } catch (error) {
      claim.release();
      throw error instanceof NeverReady ? refusal(error, port, dataDir) : error;
    }
  }

  /** The server's address, `nats://127.0.0.1:4222`. */
  get url(): string {
    return `nats://${HOST}:${this.port}`;
  }

  /** The port it took, the same through every restart. */
  get port(): number {
    return this.#serving.port;
  }

  /** The process number of the present run, or of the last one. */
  get pid(): number {
    return this.#serving.pid;
  }

  /** Stops the server and gives the data folder free. Any number of calls is one stop. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    this.#serving.signal("SIGTERM");
    const late = setTimeout(() => this.#serving.signal("SIGKILL"), PATIENCE);
    await this.#kept;
    clearTimeout(late);
    this.#claim.release();
  }

  /** Starts it again whenever it ends, until it is to stop. */
  async #keep(): Promise<void> {
    const { log, delay: first = 100 } = this.#options;
    const { signal } = this.#stopping;
    let delay = 0;
    let since = Date.now();
    for (;;) {
      const { how } = await this.#serving.ended;
      if (signal.aborted) return;
      delay = Date.now() - since > GOOD_RUN || delay === 0 ? first : Math.min(delay * 2, first * 50);
      log.warn({ delay }, `embedded nats-server ${how}: starting it again in ${delay} ms`);
      for (;;) {
        await sleep(delay, undefined, { signal }).catch(() => {});
        if (signal.aborted) return;
        since = Date.now();
        if (await this.#restart()) break;
        delay = Math.min(delay * 2, first * 50);
      }
      // stop() may have come while the new run was starting: it has signalled the old one only.
      if (signal.aborted) this.#serving.signal("SIGTERM");
    }
  }

  async #restart(): Promise<boolean> {
    const { log, binary, dataDir } = this.#options;
    try {
      configure(dataDir, this.port);
      this.#serving = await serveNats(binary, this.#configFile, dataDir, log, this.#claim.remember);
      log.info({ port: this.port, pid: this.pid }, `embedded nats-server runs again on ${HOST}:${this.port}`);
      return true;
    } catch (error) {
      log.error(`embedded nats-server does not start again: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
  }
}

/** Writes the server's configuration into the data folder. */
function configure(dataDir: string, port: number): string {
  const file = join(dataDir, "nats-server.conf");
  const lines = [
    "# Written by amqp-gateway at every start; what is changed here is lost.",
    `host: "${HOST}"`,
    `port: ${port === 0 ? -1 : port}`,
    'server_name: "amqp-gateway"',
    `max_payload: ${MAX_PAYLOAD}`,
    "jetstream {",
    `  store_dir: ${JSON.stringify(dataDir)}`,
    `  sync_interval: "${SYNC_INTERVAL}"`,
    "}",
    "",
  ];
  writeFileSync(file, lines.join("\n"));
  return file;
}

function refusal(error: NeverReady, port: number, dataDir: string): BootError {
  if (error.portTaken) {
    return new BootError(
      `port ${port} on ${HOST} is taken, so the embedded nats-server cannot start`,
      `set NATS_URL to use the server that runs there, or AMQP_NATS_PORT to another port (0 takes any free one)`,
      { cause: error },
    );
  }
  const remedy = `see what it says, or set AMQP_DATA_DIR to another folder than ${dataDir}, or NATS_URL to another server`;
  return new BootError(`the embedded nats-server does not start: ${error.message}`, remedy, { cause: error });
}
