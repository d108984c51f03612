/**
 * What of the cursor's messages is in the queue: lookups in the mirror, in order, with a fence where it says no.
 *
 * Responsibilities: a message is given on, or it is found to be outside every interval after a fence (design §4
 * DELIVER), or it waits until the end of a binding that is being undone is known (UNBIND); messages behind one that
 * waits wait too. Used by: dealing (one each), get, purge. Separate because it is about bindings and order, and knows
 * neither credit nor clients.
 */
import type { Topology } from "@amqp/topology";
import type { Incoming } from "./bus.ts";
import type { Pull } from "./pulling.ts";

/** How long nothing is heard of a binding that is being undone until the topology is asked again, milliseconds. */
const AGAIN = 1_000;

/** Where messages go from here. Called in their order. */
export interface SieveSink {
  inside(message: Incoming, pull: Pull): void;
  /** It was never in the queue. */
  outside(message: Incoming, pull: Pull): void;
  /** The topology cannot be asked now, or does not know yet, and nobody can wait for it. */
  undecided(message: Incoming, pull: Pull): void;
}

interface Waiting {
  readonly message: Incoming;
  readonly pull: Pull;
}

export class Sieve {
  readonly #queue: string;
  readonly #topology: Topology;
  readonly #sink: SieveSink;
  /** The first one is not decided, and the rest keeps its place behind it. */
  #waiting: Waiting[] = [];
  #sifting: Promise<void> | undefined;
  /** Who waits for the bindings to change. */
  readonly #wakes: Set<() => void> = new Set<() => void>();
  /** How many wait until nothing waits. */
  #hurried = 0;
  #ending: boolean = false;

  constructor(queue: string, topology: Topology, sink: SieveSink) {
    this.#queue = queue;
    this.#topology = topology;
    this.#sink = sink;
  }

  /** Messages that came and are not given on yet: each may take a consumer's credit. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Is it in the queue, as far as the mirror knows? A `false` is provisional. */
  holds(message: Incoming): boolean {
    return this.#topology.holds(this.#queue, message.subject, message.sequence);
  }

  /** Does nobody know yet, as far as the mirror does? */
  isUndecided(message: Incoming): boolean {
    return this.#topology.isUndecided(this.#queue, message.subject, message.sequence);
  }

  /** As {@link holds}, for good: waits until it is known. Undefined: nobody can wait for that, see {@link end}. */
  async surelyHolds(message: Incoming): Promise<boolean | undefined> {
    while (!this.holds(message)) {
      await this.#topology.fence();
      if (this.holds(message)) return true;
      if (!this.isUndecided(message)) return false;
      if (this.#ending) return undefined;
      await this.#change();
    }
    return true;
  }

  /** From now on nothing waits for the end of a binding that is being undone. */
  end(): void {
    this.#ending = true;
    this.#hurried++;
    this.changed();
  }

  pass(message: Incoming, pull: Pull): void {
    if (this.#sifting === undefined && this.holds(message)) {
      this.#sink.inside(message, pull);
      return;
    }
    this.#waiting.push({ message, pull });
    this.#sifting ??= this.#sift();
  }

  /** The queue's bindings, or the queue, changed: what is undecided may be known now. */
  changed(): void {
    for (const wake of [...this.#wakes]) wake();
  }

  /** Resolves when nothing waits. What is still undecided after a fence is not waited for: who asks here is waited for. */
  async empty(): Promise<void> {
    this.#hurried++;
    this.changed();
    while (this.#sifting !== undefined) await this.#sifting;
    this.#hurried--;
  }

  async #sift(): Promise<void> {
    while (this.#waiting.length > 0) {
      // What arrives from now on may depend on a write that this fence does not see: it needs the next one.
      const covered = this.#waiting.length;
      let failed = false;
      try {
        await this.#topology.fence();
      } catch {
        failed = true;
      }
      if (this.#deal(covered, failed)) await this.#change();
    }
    this.#sifting = undefined;
  }

  /** Gives on what is decided, up to the first that is not. True: nothing but a change of the bindings decides that one. */
  #deal(covered: number, failed: boolean): boolean {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const [place, { message, pull }] of waiting.entries()) {
      const isCovered = place < covered;
      if (this.holds(message)) this.#sink.inside(message, pull);
      else if (failed) this.#sink.undecided(message, pull);
      else if (isCovered && !this.isUndecided(message)) this.#sink.outside(message, pull);
      else if (isCovered && this.#hurried > 0) this.#sink.undecided(message, pull);
      else {
        this.#waiting = waiting.slice(place);
        return isCovered;
      }
    }
    return false;
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wakes.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, AGAIN).unref();
      this.#wakes.add(wake);
    });
  }
}
