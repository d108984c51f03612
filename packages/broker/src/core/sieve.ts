/**
 * What of the cursor's messages is in the queue: lookups in the mirror, in order, with a fence where it says no.
 *
 * Responsibilities: a message is given on, or it is found to be outside every interval after a fence (design §4
 * DELIVER); messages behind one that waits for a fence wait too. Used by: dealing (one each), get, purge. Separate
 * because it is about bindings and order, and knows neither credit nor clients.
 */
import type { Topology } from "@amqp/topology";
import type { Incoming } from "./bus.ts";
import type { Pull } from "./pulling.ts";

/** Where messages go from here. Called in their order. */
export interface SieveSink {
  inside(message: Incoming, pull: Pull): void;
  /** It was never in the queue. */
  outside(message: Incoming, pull: Pull): void;
  /** The topology cannot be asked now. */
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
  /** The first misses, and the rest keeps its place behind it. */
  #waiting: Waiting[] = [];
  #fenced: Promise<void> | undefined;

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

  /** As {@link holds}, for good. */
  async surelyHolds(message: Incoming): Promise<boolean> {
    if (this.holds(message)) return true;
    await this.#topology.fence();
    return this.holds(message);
  }

  pass(message: Incoming, pull: Pull): void {
    if (this.#fenced === undefined && this.holds(message)) {
      this.#sink.inside(message, pull);
      return;
    }
    this.#waiting.push({ message, pull });
    this.#fenced ??= this.#fence();
  }

  /** Resolves when nothing waits. */
  async empty(): Promise<void> {
    while (this.#fenced !== undefined) await this.#fenced;
  }

  async #fence(): Promise<void> {
    while (this.#waiting.length > 0) {
      // What arrives from now on may depend on a write that this fence does not see: it needs the next one.
      const covered = this.#waiting.length;
      let failed = false;
      try {
        await this.#topology.fence();
      } catch {
        failed = true;
      }
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const [place, { message, pull }] of waiting.entries()) {
        if (this.holds(message)) this.#sink.inside(message, pull);
        else if (failed) this.#sink.undecided(message, pull);
        else if (place < covered) this.#sink.outside(message, pull);
        else {
          this.#waiting = waiting.slice(place);
          break;
        }
      }
    }
    this.#fenced = undefined;
  }
}
