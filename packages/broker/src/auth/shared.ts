/**
 * What several connections share, by its key: a tenant's broker, a login's place on the bus. Opened by the first, closed
 * a while after the last has left.
 *
 *   opening ──► open, somebody is in ⇄ open, nobody is in ── a while, and nothing would be lost ──► closing ──► (none)
 *      └─ it cannot be opened: all who wait are refused, and the next one tries again
 *
 * Used by: jwt, nats. Separate because whoever decides who may come in need not know what it costs that somebody is in.
 */

import type { BusErrorShape } from "../core/bus.ts";

export interface Sharable {
  /** Whether something in it would be gone if it was closed while nobody is in. */
  readonly holdsTransient: boolean;
  /** Never rejects. */
  close(): Promise<void>;
}

/** One who is in. */
export interface Share<T> {
  readonly what: T;
  /** Once. */
  leave(): void;
}

/** Nobody enters any more: to whoever asks, the bus is silent. */
class Stopping extends Error implements BusErrorShape {
  override readonly name: string = "Stopping";
  readonly code: number = 0;
  readonly timeout: boolean = true;
}

interface Entry<T> {
  readonly key: string;
  readonly what: Promise<T>;
  members: number;
  timer: NodeJS.Timeout | undefined;
  closing: Promise<void> | undefined;
}

export class Shared<T extends Sharable> {
  readonly #linger: number;
  readonly #entries: Map<string, Entry<T>> = new Map<string, Entry<T>>();
  /** Those too that are not found any more, until they are closed. */
  readonly #all: Set<Entry<T>> = new Set<Entry<T>>();
  #closed: boolean = false;

  /** `linger`: milliseconds that one stays after the last has left. */
  constructor(linger: number) {
    this.#linger = linger;
  }

  /** How many there are. */
  get size(): number {
    return this.#all.size;
  }

  /** One more who is in; `open` makes it where there is none. Rejects with what `open` rejects with. */
  async enter(key: string, open: () => Promise<T>): Promise<Share<T>> {
    for (;;) {
      if (this.#closed) throw new Stopping("the broker is stopping");
      const present = this.#entries.get(key);
      if (present?.closing !== undefined) {
        await present.closing;
        continue;
      }
      const entry = present ?? this.#open(key, open);
      clearTimeout(entry.timer);
      entry.members++;
      return { what: await entry.what, leave: () => this.#leave(entry) };
    }
  }

  /** It is good for nobody any more: who comes next opens another one. It is closed when those who are in have left. */
  drop(key: string): void {
    this.#entries.delete(key);
  }

  /** After everybody has left: closes all. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(
      [...this.#all].map(async (entry) => {
        clearTimeout(entry.timer);
        await (entry.closing ?? entry.what.then((what) => what.close()).catch(() => undefined));
      }),
    );
    this.#entries.clear();
    this.#all.clear();
  }

  #open(key: string, open: () => Promise<T>): Entry<T> {
    const what = open();
    const entry: Entry<T> = { key, what, members: 0, timer: undefined, closing: undefined };
    this.#entries.set(key, entry);
    this.#all.add(entry);
    what.catch(() => this.#forget(entry));
    return entry;
  }

  #leave(entry: Entry<T>): void {
    if (--entry.members === 0) this.#wait(entry);
  }

  #wait(entry: Entry<T>): void {
    entry.timer = setTimeout(() => void this.#retire(entry), this.#linger);
    entry.timer.unref();
  }

  async #retire(entry: Entry<T>): Promise<void> {
    const what = await entry.what;
    if (entry.members > 0 || this.#closed || entry.closing !== undefined) return;
    if (what.holdsTransient) {
      this.#wait(entry);
      return;
    }
    entry.closing = what.close().finally(() => this.#forget(entry));
    await entry.closing;
  }

  #forget(entry: Entry<T>): void {
    this.#all.delete(entry);
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
  }
}
