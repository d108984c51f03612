// What each channel holds: deliveries under the broker's tags, in the order in which they came. Used by pair.ts; separate
// because tags are the broker's and the model knows none.
import type { Held } from "./model.ts";

/** A delivery and its tag. */
export interface Tagged extends Held {
  readonly tag: bigint;
}

export class Holdings {
  readonly #held: Map<number, Tagged[]> = new Map();

  of(channel: number): readonly Tagged[] {
    return this.#held.get(channel) ?? [];
  }

  add(channel: number, held: Tagged): void {
    this.#held.set(channel, [...this.of(channel), held]);
  }

  /** Removes those that the condition names, or all. */
  take(channel: number, which: (held: Tagged) => boolean = () => true): Tagged[] {
    const held = this.of(channel);
    this.#held.set(
      channel,
      held.filter((each) => !which(each)),
    );
    return held.filter(which);
  }
}
