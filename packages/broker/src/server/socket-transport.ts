/**
 * The transport of a connection on a socket, which may become a secured one before anything is read.
 *
 * Used by: server.ts. Separate because it is the whole of what a connection sees of a socket.
 */
import type { Socket } from "node:net";
import type { Transport } from "../amqp091/transport.ts";

/** Milliseconds for the peer to take what was written before its socket is destroyed. */
export const LAST_WORDS = 2000;

export class SocketTransport implements Transport {
  readonly remote: string;
  #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.remote = `${socket.remoteAddress}:${socket.remotePort}`;
  }

  /** From now on octets go through this one, which wraps the one before. */
  secured(socket: Socket): void {
    this.#socket = socket;
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
