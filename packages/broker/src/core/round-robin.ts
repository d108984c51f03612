/**
 * Whose turn it is: the members of a ring that have room, one after the other.
 *
 * Responsibilities: fair dealing. Members without room leave the ring when their turn comes and return to its end
 * when they are woken, as a blocked consumer of RabbitMQ does. Used by: dealing, subscription. Separate because it is
 * pure.
 */

/** Who takes part. */
export interface Member {
  /** How many it can take now. */
  readonly room: number;
  /** How many are to be asked for it: at most its room. */
  readonly wanted: number;
}

export class RoundRobin<T extends Member> {
  readonly #ring: T[] = [];
  readonly #resting: Set<T> = new Set<T>();
  /** The place in the ring whose turn is next. */
  #at = 0;

  get size(): number {
    return this.#ring.length + this.#resting.size;
  }

  /** What is to be asked for all members together. */
  get wanted(): number {
    let wanted = 0;
    for (const member of this.#ring) {
      const own = member.wanted;
      if (own > 0) wanted += own;
    }
    return wanted;
  }

  /** Joins at the end: everybody else has a turn first. */
  add(member: T): void {
    this.#ring.splice(this.#at, 0, member);
    this.#at++;
  }

  remove(member: T): void {
    if (this.#resting.delete(member)) return;
    const place = this.#ring.indexOf(member);
    if (place < 0) return;
    this.#ring.splice(place, 1);
    if (place < this.#at) this.#at--;
  }

  /** A member has room again, or may have. */
  wake(member: T): void {
    if (this.#resting.delete(member)) this.add(member);
  }

  /** The next member with room; it goes to the end. */
  next(): T | undefined {
    while (this.#ring.length > 0) {
      if (this.#at >= this.#ring.length) this.#at = 0;
      const member = this.#ring[this.#at];
      if (member === undefined) return undefined;
      if (member.room > 0) {
        this.#at++;
        return member;
      }
      this.#ring.splice(this.#at, 1);
      this.#resting.add(member);
    }
    return undefined;
  }

  *[Symbol.iterator](): Generator<T> {
    yield* this.#ring;
    yield* this.#resting;
  }
}
