/**
 * Taking one ready message, if there is one, without a subscription.
 *
 * Responsibilities: sees what was put back just before (waits for the settlements), skips what is not in the queue,
 * and serves the callers of one queue in their order, those that wait together in one ask. Used by: queue.
 * Separate because it pulls on a line of its own.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BusAway, type Incoming } from "./bus.ts";
import { type Desk, isExpired } from "./desk.ts";
import { isTimeout } from "./filters.ts";
import { Lag } from "./lag.ts";
import { anyAbove } from "./log-look.ts";
import type { Delivery } from "./message.ts";
import { NoWaitLine } from "./no-wait.ts";
import { TRIES, untilServing } from "./patience.ts";
import type { Turns } from "./turns.ts";

/** How often it is looked again where other pulls may have what is there. */
const LOOKS = 10;

interface Caller {
  readonly acknowledge: boolean;
  readonly resolve: (delivery: Delivery | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class Getter {
  readonly #desk: Desk;
  readonly #turns: Turns;
  #callers: Caller[] = [];
  #line: NoWaitLine | undefined;
  readonly #knows: () => boolean;
  /** What was asked for under an earlier lease may be another replica's by now; before the bus went, any replica's. */
  #lapses = 0;

  /** `knows`: is it known what any replica's clients were given before the bus restarted? Else nothing is asked for. */
  constructor(desk: Desk, turns: Turns, knows: () => boolean) {
    this.#desk = desk;
    this.#turns = turns;
    this.#knows = knows;
  }

  get(acknowledge: boolean): Promise<Delivery | undefined> {
    return new Promise((resolve, reject) => {
      this.#callers.push({ acknowledge, resolve, reject });
      if (this.#callers.length === 1) void this.#begin(0);
    });
  }

  /** The lease lapsed, or the bus went: what is under way comes for nobody. */
  lapsed(): void {
    this.#lapses++;
  }

  /** Takes the line back. In its turn. */
  async close(): Promise<void> {
    const line = this.#line;
    this.#line = undefined;
    await line?.close().catch(() => undefined);
  }

  /** Serves whoever waits, in its turn. `tries`: how many asks of theirs were lost before. */
  async #begin(tries: number): Promise<void> {
    const { name, options } = this.#desk;
    try {
      await untilServing(this.#desk, this.#knows);
      // What was on its way is nobody's now: it is put back, and taken again.
      if (tries > 0) await options.sweep(name);
      await this.#turns.run(() => this.#serve(tries));
    } catch (error) {
      const waiting = this.#callers;
      this.#callers = [];
      for (const caller of waiting) caller.reject(error);
    }
  }

  async #serve(tries: number): Promise<void> {
    const callers = this.#callers;
    this.#callers = [];
    try {
      await this.#desk.pulling.calm();
      await this.#desk.settling.settled();
      const lag = new Lag(this.#desk.bus);
      let unsure = 0;
      while (callers.length > 0 && unsure < LOOKS) {
        const answer = await this.#round(callers, lag);
        if (answer === "empty") break;
        if (answer === "unsure") await sleep(++unsure);
        if (answer === "lost") throw new BusAway(`queue '${this.#desk.name}' could not be read: the bus lost it`);
      }
      for (const caller of callers) caller.resolve(undefined);
    } catch (error) {
      await this.close();
      if (tries < TRIES && isTimeout(error)) {
        // After this turn, since the sweep needs one.
        this.#callers.unshift(...callers);
        void this.#begin(tries + 1);
      } else for (const caller of callers) caller.reject(error);
    }
  }

  /** One ask for all that still wait. */
  async #round(callers: Caller[], lag: Lag): Promise<"more" | "empty" | "unsure" | "lost"> {
    const { name, bus, held, options, settling } = this.#desk;
    if (!this.#knows()) throw new BusAway(`queue '${name}' cannot be read: the bus restarted meanwhile`);
    this.#line ??= new NoWaitLine(bus, name, (stray) => settling.putBack(stray));
    const asked = Date.now();
    const lapses = this.#lapses;
    const { messages, why } = await this.#line.ask(callers.length);
    for (const message of messages) await this.#give(message, asked, lapses, callers);
    if (why === undefined) return "more";
    if (why === "lost") return "lost";
    const state = why === "gone" ? undefined : await bus.cursorState(name);
    if (state === undefined) return "empty";
    // The cursor may not have heard of the log's latest message yet.
    if (await lag.isBehind((until) => anyAbove(bus, state.filters, state.delivered, until))) return "more";
    if (why === "empty") return "empty";
    // Others wait for messages too, which says little of the queue: look whether there is one that nobody holds.
    const elsewhere = (await options.heldElsewhere(name)).size;
    return state.ackPending > held.size + elsewhere ? "unsure" : "empty";
  }

  async #give(message: Incoming, asked: number, lapses: number, callers: Caller[]): Promise<void> {
    const { held, options, settling, dealing } = this.#desk;
    if (lapses === this.#lapses && held.renew(message)) return;
    const inside = await dealing.sieve.surelyHolds(message);
    if (inside === undefined) {
      settling.putBack(message);
      throw new BusAway(`queue '${this.#desk.name}' cannot be read: a binding of it is being undone`);
    }
    if (lapses !== this.#lapses || !options.holdsLease())
      throw new BusAway(`queue '${this.#desk.name}' cannot be read: the lease lapsed, or the bus went, meanwhile`);
    const caller = callers[0];
    if (caller === undefined) {
      settling.putBack(message);
      return;
    }
    const isDue = inside && !isExpired(message, options, asked);
    const delivery = isDue ? dealing.hold(message, caller.acknowledge) : undefined;
    if (delivery === undefined || !caller.acknowledge) settling.finish(message);
    if (delivery === undefined) return;
    callers.shift();
    caller.resolve(delivery);
  }
}
