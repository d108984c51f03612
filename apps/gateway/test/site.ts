/**
 * A folder for each test of a file, and what runs in it: gateways as processes of their own, nats-servers, ports that are
 * taken. Nothing of it outlives its test. Used by the tests of the program. Separate from program.ts because this one
 * registers hooks.
 */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { type Serving, serveNats } from "../src/embedded/process.ts";
import { createLog } from "../src/log.ts";
import { findNatsServer } from "../src/nats-server.ts";
import { Program } from "./program.ts";

const { path: binary } = await findNatsServer();

export class Site {
  folder = "";
  /** The nats-servers of {@link serve}. */
  readonly servers: Serving[] = [];
  readonly #programs: Program[] = [];
  readonly #listeners: Server[] = [];

  /** @param name of the folders */
  constructor(name: string) {
    beforeEach(() => {
      this.folder = mkdtempSync(join(tmpdir(), `${name}-`));
    });
    afterEach(async () => {
      const [programs, servers] = [this.#programs.splice(0), this.servers.splice(0)];
      for (const program of programs) program.kill();
      for (const server of servers) server.signal("SIGKILL");
      for (const listener of this.#listeners.splice(0)) listener.close();
      await Promise.all([...programs, ...servers].map(({ ended }) => ended));
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get dataDir(): string {
    return join(this.folder, "data");
  }

  run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
    const own = { HOME: this.folder, NATS_SERVER_BIN: binary, AMQP_DATA_DIR: this.dataDir };
    const program = new Program(args, { ...own, ...env });
    this.#programs.push(program);
    return program;
  }

  /** The configuration of a nats-server that keeps streams here. */
  get jetstream(): string {
    return `jetstream { store_dir: ${JSON.stringify(join(this.folder, "store"))} }`;
  }

  /** A nats-server with these lines of configuration, by default {@link jetstream}; gives its address. */
  async serve(...lines: readonly string[]): Promise<string> {
    const all = ['host: "127.0.0.1"', "port: -1", ...(lines.length > 0 ? lines : [this.jetstream]), ""];
    writeFileSync(this.#conf, all.join("\n"));
    return `nats://127.0.0.1:${(await this.#serve()).port}`;
  }

  /** The same server, killed, once more. */
  async serveAgain(url: string): Promise<void> {
    writeFileSync(this.#conf, readFileSync(this.#conf, "utf8").replace("port: -1", `port: ${new URL(url).port}`));
    await this.#serve();
  }

  /** A port that is somebody else's, who says this to whoever comes, and answers NATS's pings. */
  async takenPort(answer = ""): Promise<number> {
    const listener = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (data) => data.includes("PING") && socket.write("PONG\r\n"));
      socket.write(answer);
    });
    this.#listeners.push(listener);
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    return (listener.address() as AddressInfo).port;
  }

  get #conf(): string {
    return join(this.folder, "nats-server.conf");
  }

  async #serve(): Promise<Serving> {
    const server = await serveNats(binary, this.#conf, this.folder, createLog("silent"), () => {});
    this.servers.push(server);
    return server;
  }
}
