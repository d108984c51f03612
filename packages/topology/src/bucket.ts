/**
 * The port to the topology bucket: one ordered log of keys with compare-and-set.
 *
 * Responsibilities: what the mirror and the leases need of JetStream's key-value store, in a few verbs. A write that
 * rejects has an unknown outcome; one that resolves to "conflict" was not done.
 * Used by: topology, lease. Implemented by: nats.
 * Separate because only files named nats.ts know the client; tests run against the real one.
 */

/** The outcome of a write: the revision it got, or that somebody else was first. */
export type Written = number | "conflict";

/**
 * The bucket did not answer, or the bus refused for reasons of its own: the outcome is unknown. Fence, then look.
 * `code` and `timeout` are there so that a broker knows it from a bug without knowing this package's classes.
 */
export class BucketSilent extends Error {
  override readonly name: string = "BucketSilent";
  readonly code: number = 0;
  readonly timeout: boolean = true;
}

/** One entry of the bucket's log. */
export interface Entry {
  readonly key: string;
  /** Absent when the key was deleted or expired. */
  readonly value: Uint8Array | undefined;
  readonly revision: number;
}

/** Who is told of the bucket's log. Calls come in the order of the log. */
export interface BucketListener {
  entry(entry: Entry): void;
  /** The watch is dead and will not come back by itself; the mirror is stale from now on. */
  lost(error: Error): void;
}

/** A running watch. */
export interface Watch {
  /**
   * Resolves when everything up to `revision` was given to the listener, also where the entries
   * themselves were superseded, expired or purged (expired keys are not replayed).
   */
  caughtUp(revision: number): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Asked in the very turn in which a write leaves for the bus, each time it does; what it throws ends the write, of which
 * nothing was sent then.
 */
export type Permit = () => void;

export interface Bucket {
  /**
   * The keys below `prefix` (`o.acme.`) as a bucket of their own, which sees and reaches no others. Revisions are the
   * whole bucket's.
   */
  within(prefix: string): Bucket;
  /** Writes a key that must not exist (or is deleted). */
  create(key: string, value: Uint8Array, permit?: Permit): Promise<Written>;
  /** Writes a key whose latest revision must be `revision`. */
  update(key: string, value: Uint8Array, revision: number, permit?: Permit): Promise<Written>;
  /** Deletes a key whose latest revision must be `revision`. */
  remove(key: string, revision: number, permit?: Permit): Promise<Written>;
  /** The latest entry of a key, asked of the stream's leader; without a value where it is deleted or never was. */
  read(key: string): Promise<Entry>;
  /**
   * Writes a key that expires by itself unless written again: not before `ttl` milliseconds from now, and up to about a
   * second later. The least is 1,000.
   * `revision` is the latest one, 0 when the key must not exist. Waits for the answer no longer than a third of `ttl`.
   */
  refresh(key: string, value: Uint8Array, revision: number, ttl: number): Promise<Written>;
  /** The bucket's latest revision, asked of the stream's leader (never a stale replica). */
  lastRevision(): Promise<number>;
  /** Starts a watch of every key and resolves once its initial replay has been given to the listener. */
  watch(listener: BucketListener): Promise<Watch>;
}
