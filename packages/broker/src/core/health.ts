/**
 * Health of the bus, as the front ends are told of it.
 *
 * Responsibilities: one reason at a time why publishers should pause (away, full), and closing every connection when the
 * bus stays away too long. Used by: the Bus (as its listener), broker. Separate because the bus is opened before there is
 * a broker to tell.
 */
import type { BusListener } from "./bus.ts";
import type { Log } from "./log.ts";
import type { FrontEnd } from "./verbs.ts";

/** Who acts on the bus's return: the cursors, through the broker. */
export interface HealthListener {
  away(): void;
  back(restarted: boolean): void;
}

export class Health implements BusListener {
  readonly #frontEnds: Set<FrontEnd> = new Set<FrontEnd>();
  readonly #log: Log;
  readonly #timeout: number;
  #listener: HealthListener | undefined;
  #away: NodeJS.Timeout | undefined;
  #isAway = false;
  #isFull = false;
  #isStalled = false;

  /** `timeout`: milliseconds that the bus may be away before connections are closed. */
  constructor(log: Log, timeout: number) {
    this.#log = log;
    this.#timeout = timeout;
  }

  attach(listener: HealthListener): void {
    this.#listener = listener;
  }

  join(frontEnd: FrontEnd): void {
    this.#frontEnds.add(frontEnd);
    const reason = this.#reason();
    if (reason !== undefined) frontEnd.blocked(reason);
  }

  leave(frontEnd: FrontEnd): void {
    this.#frontEnds.delete(frontEnd);
  }

  /** Tells every front end to close its connection. */
  closing(reason: string): void {
    for (const frontEnd of [...this.#frontEnds]) frontEnd.closing(reason);
  }

  away(): void {
    this.#isAway = true;
    this.#log.warn({}, "the bus is away; publishers are told to wait");
    this.#away ??= setTimeout(() => this.#stayedAway(), this.#timeout).unref();
    this.#listener?.away();
    this.#tell();
  }

  back(restarted: boolean): void {
    this.#isAway = false;
    clearTimeout(this.#away);
    this.#away = undefined;
    this.#log.info({ restarted }, "the bus is back");
    this.#listener?.back(restarted);
    this.#tell();
  }

  full(full: boolean): void {
    if (this.#isFull === full) return;
    this.#isFull = full;
    if (full)
      this.#log.warn({}, "the stream is full; publishes are refused until there is room (AMQP_STREAM_MAX_BYTES)");
    else this.#log.info({}, "the stream has room again");
    this.#tell();
  }

  /** No leader: publishes are held, and what was delivered of late may be nobody's (design §5). */
  stalled(stalled: boolean): void {
    if (this.#isStalled === stalled) return;
    this.#isStalled = stalled;
    if (stalled) this.#log.warn({}, "the stream has no leader; publishes are held until it has one");
    else {
      this.#log.info({}, "the stream has a leader again");
      this.#listener?.back(true);
    }
    this.#tell();
  }

  room(): void {
    for (const frontEnd of this.#frontEnds) frontEnd.room();
  }

  #stayedAway(): void {
    this.#log.error({ seconds: this.#timeout / 1000 }, "the bus stayed away; closing the connections");
    this.closing("the bus is away for too long; connect again when it is back");
  }

  #tell(): void {
    const reason = this.#reason();
    for (const frontEnd of this.#frontEnds) frontEnd.blocked(reason);
  }

  #reason(): string | undefined {
    if (this.#isAway) return "the bus is away";
    if (this.#isStalled) return "the stream has no leader";
    return this.#isFull ? "the stream is full" : undefined;
  }
}
