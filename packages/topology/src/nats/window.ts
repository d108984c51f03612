/**
 * A window of writes: so many are under way at once, the others wait for their turn in order.
 *
 * Used by: nats.ts. Separate because it is no business of a write's meaning: ten thousand bindings made at once must not
 * use up their time in the server's queue, where a missing answer leaves the outcome unknown.
 */

export class Window {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  /** Runs the write when there is room for it, and gives the room to the next when it has ended either way. */
  async run<T>(write: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await write();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
