/**
 * A real nats-server for the tests: JetStream in a folder of its own, on a port that the system chose, and killed and
 * started again on the same port and folder where a test wants that.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type NatsConnection } from "@nats-io/transport-node";

export class NatsServer {
  readonly #folder: string;
  #port = 0;
  #process: ChildProcess | undefined;
  readonly #connections = new Set<NatsConnection>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(): Promise<NatsServer> {
    const server = new NatsServer(await mkdtemp(join(tmpdir(), "amqp-topology-")));
    await server.#run();
    return server;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** A connection that the server closes with itself; it reconnects within tens of milliseconds. */
  async connect(): Promise<NatsConnection> {
    const connection = await connect({ servers: this.url, reconnectTimeWait: 50, maxReconnectAttempts: -1 });
    this.#connections.add(connection);
    return connection;
  }

  /** kill -9, and the same server again. */
  async restart(pause = 0): Promise<void> {
    await this.kill();
    await new Promise((resolve) => setTimeout(resolve, pause));
    await this.#run();
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#connections].map((connection) => connection.close()));
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #run(): Promise<void> {
    const ports = await mkdtemp(join(this.#folder, "ports-"));
    const port = this.#port === 0 ? "-1" : String(this.#port);
    const store = join(this.#folder, "store");
    const args = ["-a", "127.0.0.1", "-p", port, "-js", "-sd", store, "--ports_file_dir", ports];
    const child = spawn(process.env.NATS_SERVER_BIN ?? "nats-server", args, { stdio: "ignore" });
    this.#process = child;
    const end = (): void => void child.kill("SIGKILL");
    process.once("exit", end);
    child.once("exit", () => process.off("exit", end));
    child.once("error", (error) => {
      throw error;
    });
    for (;;) {
      const [file] = (await readdir(ports)).filter((name) => name.endsWith(".ports"));
      const text = file === undefined ? "" : await readFile(join(ports, file), "utf8");
      if (text.endsWith("}")) {
        const [url] = (JSON.parse(text) as { nats: string[] }).nats;
        this.#port = Number(new URL(url ?? "").port);
        break;
      }
      if (child.exitCode !== null) throw new Error(`nats-server exited with ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    // The ports file comes before JetStream is ready.
    const connection = await connect({ servers: this.url, maxReconnectAttempts: 20, reconnectTimeWait: 50 });
    for (;;) {
      const answer = await connection.request("$JS.API.INFO", "", { timeout: 1_000 }).catch(() => undefined);
      if (answer !== undefined) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await connection.close();
  }
}
