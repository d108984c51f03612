/**
 * One thing after the other: the verbs of one cursor that must not overlap (get, purge, sweep, close).
 *
 * Responsibilities: order; a failure is its caller's and stops nobody behind him. Used by: queue, get, purge. Separate
 * because it knows nothing of queues. (The lanes of the broker are about declarations, not about cursors.)
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when everything before it has ended. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
