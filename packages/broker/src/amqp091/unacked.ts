/**
 * The delivered and unsettled messages of one channel, by delivery tag.
 *
 * Responsibilities: allocating tags in the order of writing (HIP §3), booking what must be acknowledged, and giving back
 * what a settlement names: one tag, all up to a tag, or all.
 * Used by: channel. Separate because it is pure, and its laws are tested alone.
 *
 * A ring in the order of tags. The place of a tag is at most `tag − first tag` behind the head, exactly that while no tag
 * is missing; where tags are missing (deliveries without acknowledgement take none of the ring, and what is settled in
 * the middle is squeezed out when the ring is full) the rest is found by halving. So memory follows what is held, not
 * how long ago the oldest was delivered.
 */

const LEAST = 16;
/** Most channels publish, or wait: they hold nothing, and cost nothing here. */
const NO_TAGS: Float64Array = new Float64Array(0);

export class Unacked<T> {
  #tags: Float64Array = NO_TAGS;
  #items: (T | undefined)[] = [];
  /** Places count up for ever; `place & mask` is where it stands in the arrays. */
  #head = 0;
  #tail = 0;
  #held = 0;
  #lastTag = 0;

  /** How many are booked and not taken. */
  get size(): number {
    return this.#held;
  }

  /** How much the ring has grown, in places: for the test of its bound. */
  get capacity(): number {
    return this.#items.length;
  }

  /** The next delivery tag of the channel: 1, 2, 3, … */
  allocate(): number {
    return ++this.#lastTag;
  }

  /** Books an item under a tag just allocated. */
  book(tag: number, item: T): void {
    if (this.#tail - this.#head === this.#items.length) this.#makeRoom();
    const at = this.#tail & (this.#items.length - 1);
    this.#tags[at] = tag;
    this.#items[at] = item;
    this.#tail++;
    this.#held++;
  }

  /** Takes out the item of that tag; undefined where it is not booked. */
  take(tag: number): T | undefined {
    const place = this.#find(tag);
    if (place === this.#tail) return undefined;
    const at = place & (this.#items.length - 1);
    if (this.#tags[at] !== tag) return undefined;
    const item = this.#items[at];
    if (item === undefined) return undefined;
    this.#items[at] = undefined;
    this.#held--;
    this.#dropTaken();
    return item;
  }

  /** Takes out every item at or below that tag, in the order of the tags. */
  takeUpTo(tag: number): T[] {
    const taken: T[] = [];
    const mask = this.#items.length - 1;
    while (this.#head < this.#tail && (this.#tags[this.#head & mask] as number) <= tag) {
      const at = this.#head++ & mask;
      const item = this.#items[at];
      if (item === undefined) continue;
      this.#items[at] = undefined;
      taken.push(item);
    }
    this.#held -= taken.length;
    this.#dropTaken();
    return taken;
  }

  /** Takes out everything, in the order of the tags. */
  takeAll(): T[] {
    return this.takeUpTo(Number.POSITIVE_INFINITY);
  }

  /** The first place whose tag is at or above `tag`; the tail where there is none. */
  #find(tag: number): number {
    if (this.#head === this.#tail) return this.#tail;
    const mask = this.#items.length - 1;
    const first = this.#tags[this.#head & mask] as number;
    if (tag < first) return this.#tail;
    let high = Math.min(this.#tail - 1, this.#head + (tag - first));
    if (this.#tags[high & mask] === tag) return high; // no tag is missing before it
    let low = this.#head;
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2);
      if ((this.#tags[middle & mask] as number) < tag) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** What is taken at the head is passed over. */
  #dropTaken(): void {
    const mask = this.#items.length - 1;
    while (this.#head < this.#tail && this.#items[this.#head & mask] === undefined) this.#head++;
  }

  /** The ring is full: squeezes out what was taken, and doubles it where that is less than half. */
  #makeRoom(): void {
    const before = this.#items.length;
    const length = this.#held > before / 2 ? before * 2 : Math.max(before, LEAST);
    const tags = new Float64Array(length);
    const items = new Array<T | undefined>(length).fill(undefined);
    let kept = 0;
    for (let place = this.#head; place < this.#tail; place++) {
      const at = place & (before - 1);
      const item = this.#items[at];
      if (item === undefined) continue;
      tags[kept] = this.#tags[at] as number;
      items[kept++] = item;
    }
    this.#tags = tags;
    this.#items = items;
    this.#head = 0;
    this.#tail = kept;
  }
}
