/**
 * The log's state, read of the bus as seldom as may be.
 *
 * Responsibilities: one request for all that ask for the last sequence in one turn, and the last answer for who needs no
 * newer one. Used by: bus.ts. Separate because it keeps what was read, and nothing else of the bus does.
 */
import type { LogState } from "../core/bus.ts";

export class LogReader {
  readonly #read: () => Promise<LogState>;
  #latest: LogState | undefined;
  /** When the latest was asked for, by the monotonic clock. */
  #asked = 0;
  #last: Promise<number> | undefined;

  constructor(read: () => Promise<LogState>) {
    this.#read = read;
  }

  /** @param age milliseconds since which an earlier answer will do */
  async state(age = 0): Promise<LogState> {
    const now = performance.now();
    if (this.#latest !== undefined && now - this.#asked < age) return this.#latest;
    const read = await this.#read();
    this.#latest = read;
    this.#asked = now;
    return read;
  }

  /** All calls of one turn share one request; it is sent after every one of them. */
  last(): Promise<number> {
    this.#last ??= Promise.resolve().then(async () => {
      this.#last = undefined;
      return (await this.state()).lastSequence;
    });
    return this.#last;
  }
}
