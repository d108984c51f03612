/**
 * Heartbeats, both ways (AMQP 4.2.7): one is sent where nothing else was for half an interval, and a peer that sent no
 * octet for two intervals is dropped.
 *
 * Used by: connection. Separate because it is the one clock of a connection. Any octets count as life. While this side
 * does not read, the peer is not silent; where that is because the peer does not read either, it must at least have
 * taken something from the buffer.
 */
import type { Gate } from "./gate.ts";
import type { Outbox } from "./outbox.ts";

export class Heartbeat {
  readonly #outbox: Outbox;
  readonly #gate: Gate;
  readonly #silent: () => void;
  #timer: NodeJS.Timeout | undefined;
  #writes = -1;
  #unsent = 0;
  #alive: number = performance.now();

  constructor(outbox: Outbox, gate: Gate, silent: () => void) {
    this.#outbox = outbox;
    this.#gate = gate;
    this.#silent = silent;
  }

  /** Octets came. */
  received(): void {
    this.#alive = performance.now();
  }

  /** @param seconds the agreed interval; 0 = no heartbeats. */
  start(seconds: number): void {
    if (seconds === 0) return;
    this.#alive = performance.now();
    this.#timer = setInterval(() => this.#tick(seconds * 2000), seconds * 500);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(patience: number): void {
    const unsent = this.#outbox.unsent;
    // Behind unsent octets a heartbeat would only wait.
    if (this.#outbox.writes === this.#writes && unsent === 0) {
      this.#outbox.heartbeat();
      this.#outbox.flush();
    }
    this.#writes = this.#outbox.writes;
    if (this.#gate.shut && (!this.#gate.has("unsent") || unsent < this.#unsent)) this.received();
    this.#unsent = unsent;
    if (performance.now() - this.#alive >= patience) this.#silent();
  }
}
