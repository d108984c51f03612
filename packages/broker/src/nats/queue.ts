/**
 * A first-in-first-out list that does not move its elements at each shift.
 *
 * Used by: publisher (what is held), budget (who waits). Separate because an array's shift is slow when it is long.
 */
export class Queue<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length || (this.#head > 1_024 && this.#head * 2 > this.#items.length)) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Puts these before all others, in their order. */
  unshift(items: readonly T[]): void {
    this.#items = [...items, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }
}
