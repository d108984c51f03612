/**
 * The gate before a socket: shut while any reason to stop reading stands.
 *
 * Responsibilities: several parts may want the socket paused at a time; it is read again when the last lets go.
 * Used by: connection. Separate because a pause taken by one part must not be lifted by another.
 */
import type { Transport } from "./transport.ts";

/**
 * `login`: the doorkeeper is asked; `lane`: too much waits in lanes; `room`: the bus's window of publishes is full;
 * `unsent`: the peer does not read.
 */
export type PauseReason = "login" | "lane" | "room" | "unsent";

export class Gate {
  readonly #transport: Transport;
  readonly #reasons: Set<PauseReason> = new Set<PauseReason>();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get shut(): boolean {
    return this.#reasons.size > 0;
  }

  has(reason: PauseReason): boolean {
    return this.#reasons.has(reason);
  }

  pause(reason: PauseReason): void {
    if (this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    if (this.#reasons.size === 1) this.#transport.pause();
  }

  resume(reason: PauseReason): void {
    if (this.#reasons.delete(reason) && this.#reasons.size === 0) this.#transport.resume();
  }
}
