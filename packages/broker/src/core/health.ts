/**
 * Health: whether this broker can serve, as the front ends are told of it.
 *
 * Responsibilities: one reason at a time why publishers should pause (away, no leader, full), and closing the doors when the bus, or
 * this replica's presence on it, stays away too long. Used by: bus-listeners, replica, the doorkeepers of
 * several brokers. Separate because the bus is opened before there is a broker to tell.
 *
 *   well ⇄ troubled → (longer than the timeout) → closed → (all is well again) → well
 */
import type { BusListener } from "./bus.ts";
import type { Log } from "./log.ts";
import type { FrontEnd } from "./verbs.ts";

/** Who acts on the bus's return: the cursors, through the broker. */
export interface HealthListener {
  away(): void;
  back(restarted: boolean): void;
  moved(queue: string): void;
  /** In this turn: may it deliver and settle? */
  acts(): boolean;
}

/** Why nobody can be served, and what clients are told when it lasts. */
const TROUBLES = {
  bus: "the bus is away for too long; connect again when it is back",
  presence: "this replica cannot keep its lease on the bus; connect again",
} as const;
type Trouble = keyof typeof TROUBLES;

export class Health implements BusListener {
  readonly #frontEnds: Set<FrontEnd> = new Set<FrontEnd>();
  readonly #log: Log;
  readonly #timeout: number;
  readonly #troubles: Set<Trouble> = new Set<Trouble>();
  #listener: HealthListener | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed: boolean = false;
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

  /** It is there no more. */
  detach(): void {
    this.#listener = undefined;
  }

  join(frontEnd: FrontEnd): void {
    this.#frontEnds.add(frontEnd);
    const reason = this.#reason();
    if (reason !== undefined) frontEnd.blocked(reason);
  }

  leave(frontEnd: FrontEnd): void {
    this.#frontEnds.delete(frontEnd);
  }

  /** Tells every front end to close its connections and its door; what closes it for good says so here. */
  closing(reason: string): void {
    for (const frontEnd of [...this.#frontEnds]) frontEnd.closing(reason);
  }

  away(): void {
    this.#log.warn({}, "the bus is away; publishers are told to wait");
    this.#trouble("bus");
    this.#listener?.away();
    this.#tell();
  }

  back(restarted: boolean): void {
    this.#log.info({ restarted }, "the bus is back");
    this.#over("bus");
    this.#listener?.back(restarted);
    this.#tell();
  }

  moved(queue: string): void {
    this.#listener?.moved(queue);
  }

  stands(): boolean {
    return this.#listener?.acts() ?? true;
  }

  /** This replica holds no presence lease: nothing may be delivered or settled until {@link present}. */
  absent(): void {
    this.#trouble("presence");
  }

  present(): void {
    this.#over("presence");
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

  #trouble(trouble: Trouble): void {
    this.#troubles.add(trouble);
    if (!this.#isClosed) this.#timer ??= setTimeout(() => this.#lasted(), this.#timeout).unref();
  }

  #over(trouble: Trouble): void {
    this.#troubles.delete(trouble);
    if (this.#troubles.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#isClosed) return;
    this.#isClosed = false;
    for (const frontEnd of this.#frontEnds) frontEnd.serving();
  }

  #lasted(): void {
    this.#timer = undefined;
    this.#isClosed = true;
    const reason = TROUBLES[this.#troubles.has("bus") ? "bus" : "presence"];
    this.#log.error({ seconds: this.#timeout / 1000, reason }, "closing the connections (AMQP_BUS_TIMEOUT)");
    this.closing(reason);
  }

  #tell(): void {
    const reason = this.#reason();
    for (const frontEnd of this.#frontEnds) frontEnd.blocked(reason);
  }

  #reason(): string | undefined {
    if (this.#troubles.has("bus")) return "the bus is away";
    if (this.#isStalled) return "the stream has no leader";
    return this.#isFull ? "the stream is full" : undefined;
  }
}
