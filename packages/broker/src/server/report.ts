/**
 * The counters as lines of the log: one for each minute in which something was refused, and one in the end. Who wants
 * them elsewhere asks the broker's handle; no port is opened for them (HIP §7).
 *
 * Used by: server.ts. Separate because a census only counts.
 */
import type { Census } from "../amqp091/census.ts";
import type { Log } from "../core/log.ts";

/** Milliseconds between two looks. */
const INTERVAL = 60_000;

export class Report {
  readonly #census: Census;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #told: string;

  constructor(census: Census, log: Log) {
    this.#census = census;
    this.#log = log;
    this.#told = this.#refused();
    this.#timer = setInterval(() => this.#look(), INTERVAL);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    const counters = this.#census.counters();
    if (counters.accepted > 0) this.#log.info({ counters }, "what the ports have seen");
  }

  #look(): void {
    const refused = this.#refused();
    if (refused === this.#told) return;
    this.#told = refused;
    this.#log.info({ counters: this.#census.counters() }, "more was refused; the counts since the start");
  }

  #refused(): string {
    const { refusals, failedLogins, displaced } = this.#census.counters();
    return JSON.stringify([refusals, failedLogins, displaced]);
  }
}
