/**
 * The listener: the only file that opens sockets. Each accepted socket becomes a transport and a connection over it.
 *
 * Used by: apps/gateway, tests. Separate so that everything above it runs without a socket.
 */
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { Connections } from "./amqp091/connections.ts";
import { DEFAULT_LIMITS, type Limits } from "./amqp091/limits.ts";
import type { Transport } from "./amqp091/transport.ts";
import type { Doorkeeper } from "./core/doorkeeper.ts";
import type { Log } from "./core/log.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  /** Told to clients in connection.start. */
  readonly version?: string;
  readonly clusterName?: string;
  /** Changes to the limits of connections; milliseconds, octets, counts, as {@link Limits} says. */
  readonly limits?: Partial<Limits>;
}

/** An open port. */
export interface Listening {
  readonly port: number;
  /** Connections that are there. */
  readonly connections: number;
  /** Accepts no more, closes every connection with 320 CONNECTION_FORCED, resolves when everything is given back. */
  close(reason?: string): Promise<void>;
}

/** The AMQP 0-9-1 ports behind which one doorkeeper stands. */
export class Server {
  readonly #doorkeeper: Doorkeeper;
  readonly #log: Log;
  readonly #listening: Set<Listening> = new Set<Listening>();

  constructor(doorkeeper: Doorkeeper, log: Log) {
    this.#doorkeeper = doorkeeper;
    this.#log = log;
  }

  /** Opens a port. Rejects with the system's error where it cannot be had (`EADDRINUSE`, …). */
  async listen(options: ListenOptions): Promise<Listening> {
    let door: Door | undefined;
    const connections = new Connections({
      doorkeeper: this.#doorkeeper,
      log: this.#log,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
      version: options.version ?? "0.0.0",
      clusterName: options.clusterName ?? "amqp",
      accepting: (accepts) => door?.set(accepts),
    });
    const sockets = new Set<Socket>();
    const server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      accept(socket, connections);
    });
    try {
      await bind(server, options.host, options.port);
    } catch (error) {
      this.#doorkeeper.leave(connections);
      throw error;
    }
    const port = portOf(server) ?? options.port;
    door = new Door(server, { host: options.host, port }, this.#log);
    const listening: Listening = {
      port,
      get connections() {
        return connections.size;
      },
      close: async (reason = "shutdown") => {
        this.#listening.delete(listening);
        door?.leave();
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        await connections.close(reason);
        for (const socket of sockets) socket.destroySoon();
        const impatient = setTimeout(() => destroyAll(sockets), LAST_WORDS);
        await closed;
        clearTimeout(impatient);
      },
    };
    this.#listening.add(listening);
    return listening;
  }

  /** Closes every port, as {@link Listening.close}. */
  async close(reason?: string): Promise<void> {
    await Promise.all([...this.#listening].map((listening) => listening.close(reason)));
  }
}

/** Milliseconds between two tries to have a port again. */
const AGAIN = 500;

/**
 * Whether the port is open: closed while nobody can be served, so that a readiness check, a TCP connect (HIP §7), says
 * what is true.
 */
class Door {
  readonly #server: NetServer;
  readonly #where: { readonly host: string; readonly port: number };
  readonly #log: Log;
  #wanted: boolean = true;
  #left: boolean = false;
  #opening: boolean = false;

  constructor(server: NetServer, where: { readonly host: string; readonly port: number }, log: Log) {
    this.#server = server;
    this.#where = where;
    this.#log = log;
  }

  set(open: boolean): void {
    if (this.#left || this.#wanted === open) return;
    this.#wanted = open;
    if (open) void this.#open();
    else {
      this.#server.close();
      this.#log.warn({ port: this.#where.port }, "the port is closed until clients can be served again");
    }
  }

  /** It is never opened again. */
  leave(): void {
    this.#left = true;
  }

  async #open(): Promise<void> {
    if (this.#opening) return;
    this.#opening = true;
    while (this.#wanted && !this.#left && !this.#server.listening) {
      try {
        await bind(this.#server, this.#where.host, this.#where.port);
        if (!this.#wanted || this.#left) this.#server.close();
        else this.#log.info({ port: this.#where.port }, "the port is open again");
      } catch (error) {
        this.#log.error({ err: error, port: this.#where.port }, "the port cannot be opened again yet");
        await new Promise((resolve) => setTimeout(resolve, AGAIN).unref());
      }
    }
    this.#opening = false;
  }
}

/** A port that nothing listens on at the moment. Rejects as {@link Server.listen} does. */
export async function findFreePort(host: string): Promise<number> {
  const server = createServer();
  await bind(server, host, 0);
  const port = portOf(server) ?? 0;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function portOf(server: NetServer): number | undefined {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : undefined;
}

/** Milliseconds for the peer to take what was written before its socket is destroyed. */
const LAST_WORDS = 2000;

function bind(server: NetServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const listening = (): void => {
      server.off("error", failed);
      resolve();
    };
    const failed = (error: Error): void => {
      server.off("listening", listening);
      reject(error);
    };
    server.once("error", failed);
    server.once("listening", listening);
    server.listen({ host, port });
  });
}

function accept(socket: Socket, connections: Connections): void {
  const connection = connections.accept(new SocketTransport(socket));
  if (connection === undefined) {
    socket.destroy();
    return;
  }
  let failure: Error | undefined;
  socket.on("data", (chunk: Buffer) => connection.receive(chunk));
  socket.on("drain", () => connection.drained());
  socket.on("error", (error) => {
    failure = error;
  });
  socket.on("close", () => connection.closed(failure));
}

function destroyAll(sockets: ReadonlySet<Socket>): void {
  for (const socket of sockets) socket.destroy();
}

class SocketTransport implements Transport {
  readonly remote: string;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.remote = `${socket.remoteAddress}:${socket.remotePort}`;
  }

  get bufferedOctets(): number {
    return this.#socket.writableLength;
  }

  write(chunk: Uint8Array): boolean {
    return this.#socket.writable && this.#socket.write(chunk);
  }

  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    const socket = this.#socket;
    socket.resume(); // so that the peer's end is seen
    socket.end();
    const impatient = setTimeout(() => socket.destroy(), LAST_WORDS);
    impatient.unref();
    socket.once("close", () => clearTimeout(impatient));
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
