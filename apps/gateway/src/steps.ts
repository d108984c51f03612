/**
 * Steps that are undone in the reverse order: how a gateway boots, and how it stops. Used by boot.ts and workers.ts.
 * Separate because both must leave nothing behind, whether a step fails, a signal comes between two of them, or what was
 * started is stopped in the end.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "./log.ts";

/** What one undoing may take, in milliseconds: the next ones still have to be done before an orchestrator kills us. */
const PATIENCE = 10_000;

/** What was done so far, and how to undo it. */
export class Steps {
  readonly #log: Logger;
  readonly #signal: AbortSignal | undefined;
  readonly #undos: { readonly undo: () => Promise<unknown>; readonly patience: number }[] = [];
  #undone: Promise<void> | undefined;

  /** @param signal aborted: no further step begins, and the signal's reason is thrown */
  constructor(log: Logger, signal?: AbortSignal) {
    this.#log = log;
    this.#signal = signal;
  }

  /**
   * Does the next one.
   * @param undo takes back what `start` resolved to, and may take `patience` milliseconds
   */
  async take<T>(
    start: () => Promise<T>,
    undo?: (value: T) => Promise<unknown>,
    patience: number = PATIENCE,
  ): Promise<T> {
    this.#signal?.throwIfAborted();
    const value = await start();
    if (undo !== undefined) this.#undos.push({ undo: () => undo(value), patience });
    return value;
  }

  /** As {@link take}, of one that may take long: where a signal comes it is not waited for, and undone when it is through. */
  async takeLong<T>(start: () => Promise<T>, undo: (value: T) => Promise<unknown>): Promise<T> {
    this.#signal?.throwIfAborted();
    const starting = start();
    let abort = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
      abort = (): void => reject(this.#signal?.reason);
    });
    this.#signal?.addEventListener("abort", abort);
    try {
      const value = await Promise.race([starting, aborted]);
      this.#undos.push({ undo: () => undo(value), patience: PATIENCE });
      return value;
    } catch (error) {
      if (this.#signal?.aborted === true) starting.then(undo).catch(() => undefined);
      throw error;
    } finally {
      this.#signal?.removeEventListener("abort", abort);
    }
  }

  /** Throws where a signal came during the last step. */
  done(): void {
    this.#signal?.throwIfAborted();
  }

  /** Undoes all, the last first; once, and never rejects: what cannot be undone is logged, for the rest still has to be. */
  undo(): Promise<void> {
    this.#undone ??= this.#undo();
    return this.#undone;
  }

  async #undo(): Promise<void> {
    for (let step = this.#undos.pop(); step !== undefined; step = this.#undos.pop()) {
      const { undo, patience } = step;
      const late = new AbortController();
      try {
        await Promise.race([
          undo(),
          sleep(patience, undefined, { signal: late.signal }).then(() => {
            throw new Error(`it took longer than ${patience} ms`);
          }),
        ]);
      } catch (error) {
        this.#log.error({ err: error }, "stopping went wrong");
      } finally {
        late.abort();
      }
    }
  }
}
