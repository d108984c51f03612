/**
 * Whether a port is open: closed while nobody can be served, so that a readiness check, a TCP connect (HIP §7), says
 * what is true.
 *
 * Used by: server.ts. Separate because a port opens and closes many times in the life of a listener.
 */
import type { Server } from "node:net";
import type { Log } from "../core/log.ts";

/** Milliseconds between two tries to have a port again. */
const AGAIN = 500;

export class Door {
  readonly #server: Server;
  readonly #where: { readonly host: string; readonly port: number };
  readonly #log: Log;
  #wanted: boolean = true;
  #left: boolean = false;
  #opening: boolean = false;

  constructor(server: Server, where: { readonly host: string; readonly port: number }, log: Log) {
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

/** Listens; rejects with the system's error where the port cannot be had. */
export function bind(server: Server, host: string, port: number): Promise<void> {
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

/** The port that a server has; undefined where it listens on none. */
export function portOf(server: Server): number | undefined {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : undefined;
}
