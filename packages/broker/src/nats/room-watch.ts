/**
 * Whether the log has room, once it refused something for the lack of it.
 *
 * Responsibilities: says `full` once, asks the bus now and then, says `not full` when what was refused would fit.
 * Used by: bus.ts. Separate because it is the one piece of polling, and only while the log is full.
 */
import type { Log } from "../core/log.ts";

const POLL_MS = 250;
/** Free room that ends it: some messages as large as the one refused, and a part of the whole. */
const ROOM_FOR = 4;
const PART = 0.01;

export interface RoomWatchOptions {
  /** Octets free and bound of the log. */
  read(): Promise<{ free: number; bound: number }>;
  full(full: boolean): void;
  readonly log: Log;
}

export class RoomWatch {
  readonly #options: RoomWatchOptions;
  #full: boolean = false;
  #largest = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RoomWatchOptions) {
    this.#options = options;
  }

  /** A message of so many octets found no room. */
  refused(octets: number): void {
    this.#largest = Math.max(this.#largest, octets);
    if (this.#full) return;
    this.#full = true;
    this.#options.log.warn({}, "the log is full: publishes are refused until messages are consumed");
    this.#options.full(true);
    this.#schedule();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#full = true;
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.#poll().catch((error: unknown) => {
        this.#options.log.debug({}, `the log's state is not to be had: ${String(error)}`);
        this.#schedule();
      });
    }, POLL_MS);
    this.#timer.unref();
  }

  async #poll(): Promise<void> {
    const { free, bound } = await this.#options.read();
    const wanted = Math.min(Math.max(this.#largest * ROOM_FOR, bound * PART), bound / 2);
    if (free < wanted) {
      this.#schedule();
      return;
    }
    this.#full = false;
    this.#largest = 0;
    this.#options.log.info({}, "the log has room again");
    this.#options.full(false);
  }
}
