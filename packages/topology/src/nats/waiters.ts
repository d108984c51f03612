/**
 * Those who wait for a revision of the bucket, in the order they came.
 *
 * Used by: watch. Separate because it knows nothing of consumers: a number that rises, and promises that it settles.
 */

interface Waiter {
  readonly revision: number;
  resolve(): void;
  reject(error: Error): void;
}

export class Waiters {
  #waiting: Waiter[] = [];
  #reached = 0;

  /** Everything at or below it has been told. */
  get reached(): number {
    return this.#reached;
  }

  /** Whether nobody waits. */
  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Resolves at the next {@link reach} that comes so far. */
  wait(revision: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ revision, resolve, reject });
    });
  }

  reach(revision: number): void {
    if (revision > this.#reached) this.#reached = revision;
    if (this.empty) return;
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((waiter) => waiter.revision > this.#reached);
    for (const waiter of waiting) if (waiter.revision <= this.#reached) waiter.resolve();
  }

  /** Nothing comes any more. */
  fail(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) waiter.reject(error);
  }
}
