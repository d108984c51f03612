/**
 * The listener: with the files of server/ all that opens sockets. Each accepted socket becomes a transport and a
 * connection over it, at once, so that a TLS handshake is under the same limits and the same clock as what follows it.
 *
 * Used by: place, and the package's index, which shows its options. Separate so that everything above it runs without a
 * socket.
 */
import { createServer, type Socket } from "node:net";
import { Census, type Counters } from "./amqp091/census.ts";
import type { Connection } from "./amqp091/connection.ts";
import { Connections } from "./amqp091/connections.ts";
import { DEFAULT_LIMITS, type Limits } from "./amqp091/limits.ts";
import { Suspicion } from "./amqp091/suspicion.ts";
import type { Doorkeeper } from "./core/doorkeeper.ts";
import type { Log } from "./core/log.ts";
import { bind, Door, portOf } from "./server/door.ts";
import { Report } from "./server/report.ts";
import { LAST_WORDS, SocketTransport } from "./server/socket-transport.ts";
import { Tls, type TlsOptions } from "./server/tls.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  /** Told to clients in connection.start. */
  readonly version?: string;
  readonly clusterName?: string;
  /** Changes to the limits of connections; milliseconds, octets, counts, as {@link Limits} says. */
  readonly limits?: Partial<Limits>;
  /** AMQP over TLS (`amqps`): nothing is read before its handshake. */
  readonly tls?: TlsOptions;
}

/** An open port. */
export interface Listening {
  readonly port: number;
  /** Connections that are there. */
  readonly connections: number;
  /**
   * Shows this certificate from now on; connections that are there go on.
   * @throws CertificateError, and the old one stays; an Error where the port has no TLS
   */
  renew(certificate: TlsOptions): void;
  /** Accepts no more, closes every connection with 320 CONNECTION_FORCED, resolves when everything is given back. */
  close(reason?: string): Promise<void>;
}

/** The AMQP 0-9-1 ports behind which one doorkeeper stands. */
export class Server {
  readonly #doorkeeper: Doorkeeper;
  readonly #log: Log;
  readonly #listening: Set<Listening> = new Set<Listening>();
  readonly #census: Census = new Census();
  readonly #report: Report;
  #suspicion: Suspicion | undefined;

  constructor(doorkeeper: Doorkeeper, log: Log) {
    this.#doorkeeper = doorkeeper;
    this.#log = log;
    this.#report = new Report(this.#census, log);
  }

  /**
   * Opens a port. Rejects with the system's error where it cannot be had (`EADDRINUSE`, …), with a CertificateError
   * where the certificate cannot be served.
   */
  async listen(options: ListenOptions): Promise<Listening> {
    const tls = options.tls && new Tls(options.tls);
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    let door: Door | undefined;
    const connections = new Connections({
      doorkeeper: this.#doorkeeper,
      census: this.#census,
      suspicion: this.#suspect(limits),
      log: this.#log,
      limits,
      version: options.version ?? "0.0.0",
      clusterName: options.clusterName ?? "amqp",
      accepting: (accepts) => door?.set(accepts),
    });
    const sockets = new Set<Socket>();
    const server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
      accept(socket, { connections, tls, sockets });
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
      renew: (certificate) => {
        if (tls === undefined) throw new Error(`port ${port} has no TLS`);
        tls.renew(certificate);
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

  /** Numbers of all ports. */
  counters(): Counters {
    return this.#census.counters();
  }

  /** Of the process: whoever failed at one port is known at the others. */
  #suspect({ loginDelay }: Limits): Suspicion {
    this.#suspicion ??= new Suspicion(loginDelay);
    return this.#suspicion;
  }

  /** Closes every port, as {@link Listening.close}. */
  async close(reason?: string): Promise<void> {
    await Promise.all([...this.#listening].map((listening) => listening.close(reason)));
    this.#report.stop();
  }
}

/** A port that nothing listens on at the moment: `wanted`, or any for 0. Rejects as {@link Server.listen} does. */
export async function findFreePort(host: string, wanted: number = 0): Promise<number> {
  const server = createServer();
  await bind(server, host, wanted);
  const port = portOf(server) ?? 0;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** What accepted sockets are given to. */
interface Reception {
  readonly connections: Connections;
  readonly tls: Tls | undefined;
  /** Those that are there, each as it is written to. */
  readonly sockets: Set<Socket>;
}

function accept(socket: Socket, { connections, tls, sockets }: Reception): void {
  let failure: Error | undefined;
  const watch = (each: Socket): void => {
    sockets.add(each);
    // An error without a listener would end the process.
    each.on("error", (error) => {
      failure ??= error;
    });
    each.once("close", () => sockets.delete(each));
  };
  watch(socket);
  const transport = new SocketTransport(socket);
  const connection = connections.accept(transport);
  if (connection === undefined) {
    socket.destroy();
    return;
  }
  socket.once("close", () => connection.closed(failure));
  if (tls === undefined) {
    attach(socket, connection);
    return;
  }
  tls.secure(socket, (outcome) => {
    if (outcome instanceof Error) {
      failure = new Error(`the TLS handshake failed: ${outcome.message}`);
      socket.destroy();
    } else {
      watch(outcome);
      sockets.delete(socket);
      transport.secured(outcome);
      attach(outcome, connection);
    }
  });
}

function attach(socket: Socket, connection: Connection): void {
  socket.on("data", (chunk: Buffer) => connection.receive(chunk));
  socket.on("drain", () => connection.drained());
}

function destroyAll(sockets: ReadonlySet<Socket>): void {
  for (const socket of sockets) socket.destroy();
}
