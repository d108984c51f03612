/**
 * The fence: catching up with the bucket as it is NOW, shared by all who ask in one turn (design: before any negative
 * answer catch up first).
 *
 * Used by: topology. Separate because its one rule is easy to break: whoever asks must be answered by a request that
 * was sent after he asked, or what another replica was told had happened may still be missing here.
 */

import { BucketSilent } from "./bucket.ts";

/** How long a bucket may be silent: its servers elect a leader in 5 to 9 s (measured), milliseconds. */
const SILENCE = 18_000;
/** How long its leader may know less than was seen: one that was just elected may still be reading its log. */
const BEHIND = 2_000;
const PAUSE = 100;

/**
 * The bucket's latest revision, in spite of an election among its servers. Less than `seen` is an answer only when it
 * stays so: then the bucket was set back.
 */
export async function latestRevision(lastRevision: () => Promise<number>, seen: number): Promise<number> {
  const began = performance.now();
  for (;;) {
    try {
      const last = await lastRevision();
      if (last >= seen || performance.now() - began > BEHIND) return last;
    } catch (error) {
      if (!(error instanceof BucketSilent) || performance.now() - began > SILENCE) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

/** One catch-up at a time; those who ask while one is under way share the next. */
export class Fence {
  readonly #catchUp: () => Promise<void>;
  /** What the callers of this turn wait for; its request is not sent yet. */
  #waiting: Promise<void> | undefined;
  #underWay: Promise<unknown> = Promise.resolve();

  /** `catchUp` sends a request and resolves when the mirror holds everything the answer speaks of. */
  constructor(catchUp: () => Promise<void>) {
    this.#catchUp = catchUp;
  }

  /** Resolves when everything that was in the bucket at this call is in the mirror. */
  pass(): Promise<void> {
    this.#waiting ??= this.#next();
    return this.#waiting;
  }

  async #next(): Promise<void> {
    // After every callback of this turn, so that all of them share one request; and after the one under way, so that
    // a storm of fences is one request a round trip.
    await new Promise<void>((resolve) => setImmediate(resolve));
    await this.#underWay.catch(() => {});
    this.#waiting = undefined;
    const passed = this.#catchUp();
    this.#underWay = passed;
    await passed;
  }
}
