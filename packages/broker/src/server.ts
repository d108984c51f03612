/**
 * The listener: the only file that opens sockets. Each accepted socket becomes a transport and a connection over it.
 *
 * Used by: apps/gateway, tests. Separate so that everything above it runs without a socket.
 */
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { Connections } from "./amqp091/connections.ts";
import { DEFAULT_LIMITS, type Limits } from "./amqp091/limits.ts";
import type { Transport } from "./amqp091/transport.ts";
import type { Log } from "./core/log.ts";
import type { Verbs } from "./core/verbs.ts";

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

/** The AMQP 0-9-1 ports of one broker. */
export class Server {
  readonly #verbs: Verbs;
  readonly #log: Log;
  readonly #listening: Set<Listening> = new Set<Listening>();

  constructor(verbs: Verbs, log: Log) {
    this.#verbs = verbs;
    this.#log = log;
  }

  /** Opens a port. Rejects with the system's error where it cannot be had (`EADDRINUSE`, …). */
  async listen(options: ListenOptions): Promise<Listening> {
    const connections = new Connections({
      verbs: this.#verbs,
      log: this.#log,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
      version: options.version ?? "0.0.0",
      clusterName: options.clusterName ?? "amqp",
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
      this.#verbs.leave(connections);
      throw error;
    }
    const address = server.address();
    const listening: Listening = {
      port: typeof address === "object" && address !== null ? address.port : options.port,
      get connections() {
        return connections.size;
      },
      close: async (reason = "shutdown") => {
        this.#listening.delete(listening);
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

/** Milliseconds for the peer to take what was written before its socket is destroyed. */
const LAST_WORDS = 2000;

function bind(server: NetServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      resolve();
    });
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
