/**
 * A lease: a key of the bucket that is this process's for as long as it keeps writing it, and expires by itself.
 *
 * Used by: the broker, for a replica's presence (its exclusive queues live as long) and for leadership. Separate from
 * topology because it must go on when the mirror lags, and because of its one promise: once it has lapsed it is never
 * renewed, so that two processes never hold one key (design: a lapsed lease is never renewed).
 *
 * States: held → lapsed (its time was up, or somebody else wrote the key), or held → released.
 */
import type { Bucket, Written } from "./bucket.ts";
import { encodeRecord } from "./records.ts";

export interface LeaseOptions {
  /** How long it outlives its last refresh, milliseconds: 3,000 if not given; 1,000 (the bus's least) to 5,000. */
  readonly ttl?: number;
  /** Told once, when it is lost (not when it is released). It may be somebody else's from now on. */
  lapsed(): void;
}

const DEFAULT_TTL = 3_000;
const LEAST_TTL = 1_000;
const MOST_TTL = 5_000;

/** The part of the time to live that is not relied upon: clocks drift, and what is decided takes a moment to leave. */
const MARGIN = 0.1;

/** One held key. */
export class Lease {
  readonly #bucket: Bucket;
  readonly #key: string;
  readonly #value: Uint8Array;
  readonly #ttl: number;
  readonly #lapsed: () => void;
  #revision: number;
  /** By the monotonic clock: until then the key is surely ours. */
  #deadline: number;
  #state: "held" | "lapsed" | "released" = "held";
  #timer: NodeJS.Timeout | undefined;
  #refreshing: Promise<void> | undefined;

  private constructor(bucket: Bucket, key: string, value: Uint8Array, ttl: number, lapsed: () => void, first: Stamp) {
    this.#bucket = bucket;
    this.#key = key;
    this.#value = value;
    this.#ttl = ttl;
    this.#lapsed = lapsed;
    this.#revision = first.revision;
    this.#deadline = first.sent + ttl * (1 - MARGIN);
    this.#wait(ttl / 3);
  }

  /**
   * Takes a free key with a time to live and keeps refreshing it; "conflict" where somebody holds it. The value must tell
   * this holder from every other one (hold an id of its own): it is how a write of unknown outcome is recognised. Rejects
   * where the bus does not answer. Throws a RangeError for a ttl outside 1,000 to 5,000.
   */
  static async take(bucket: Bucket, key: string, value: object, options: LeaseOptions): Promise<Lease | "conflict"> {
    const ttl = options.ttl ?? DEFAULT_TTL;
    if (!(ttl >= LEAST_TTL && ttl <= MOST_TTL)) {
      throw new RangeError(`a lease lives ${LEAST_TTL} to ${MOST_TTL} ms, not ${ttl}`);
    }
    const octets = encodeRecord(value);
    const sent = performance.now();
    const revision = await bucket.refresh(key, octets, 0, ttl);
    return revision === "conflict"
      ? revision
      : new Lease(bucket, key, octets, ttl, () => options.lapsed(), { revision, sent });
  }

  /** Whether the key is surely ours in this very turn, by this process's own clock. Once false, for ever. */
  held(): boolean {
    if (this.#state !== "held") return false;
    if (performance.now() < this.#deadline) return true;
    this.#lapse();
    return false;
  }

  /** Gives the key up at once, if it is still ours. Rejects where the bus does not answer: the key then expires. */
  async release(): Promise<void> {
    if (this.#state !== "held") return;
    this.#state = "released";
    clearTimeout(this.#timer);
    await this.#refreshing;
    const removed = await this.#bucket.remove(this.#key, this.#revision);
    if (removed !== "conflict") return;
    // A refresh whose answer was lost moved the revision on.
    const ours = await this.#ours();
    if (ours !== undefined) await this.#bucket.remove(this.#key, ours);
  }

  #wait(milliseconds: number): void {
    const left = Math.max(0, this.#deadline - performance.now());
    this.#timer = setTimeout(() => this.#wake(), Math.min(milliseconds, left));
    this.#timer.unref();
  }

  #wake(): void {
    if (!this.held()) return;
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    // The clock goes on while the bus is silent.
    this.#wait(this.#ttl / 3);
  }

  async #refresh(): Promise<void> {
    const sent = performance.now();
    try {
      const written = await this.#write();
      if (written === "conflict") {
        this.#lapse();
      } else {
        this.#revision = written;
        // An answer that comes after the deadline renews nothing.
        if (this.held()) this.#deadline = sent + this.#ttl * (1 - MARGIN);
      }
    } catch {
      // Unknown: the next one finds out. The deadline stands.
    }
  }

  async #write(): Promise<Written> {
    const written = await this.#bucket.refresh(this.#key, this.#value, this.#revision, this.#ttl);
    if (written !== "conflict") return written;
    const ours = await this.#ours();
    // Only while it is held: what expired meanwhile is not written again.
    if (ours === undefined || !this.held()) return "conflict";
    return this.#bucket.refresh(this.#key, this.#value, ours, this.#ttl);
  }

  /** The key's revision if its latest write is one of this lease's own. */
  async #ours(): Promise<number | undefined> {
    const { value, revision } = await this.#bucket.read(this.#key);
    return value !== undefined && Buffer.compare(value, this.#value) === 0 ? revision : undefined;
  }

  #lapse(): void {
    if (this.#state !== "held") return;
    this.#state = "lapsed";
    clearTimeout(this.#timer);
    this.#lapsed();
  }
}

/** A write's revision, and when it left by the monotonic clock. */
interface Stamp {
  readonly revision: number;
  readonly sent: number;
}
