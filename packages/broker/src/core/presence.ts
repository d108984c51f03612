/**
 * Presence: this replica's id and the lease that proves that it lives.
 *
 * Responsibilities: taking the lease at boot once every lease seen is renewed or gone, answering in any turn whether this
 * process may act, and taking a NEW id after a lapse: a lapsed lease is never renewed (design §4, LEASE).
 *
 *   taking → held → lapsed (taking a new one, taking over what the old one owned) → held … → released
 *
 * Used by: replica, leadership. Separate because everything that must not be done by a dead replica asks here.
 */
import { type Bucket, Lease, replicaKey, type Topology } from "@amqp/topology";
import type { Log } from "./log.ts";
import { uniqueId } from "./names.ts";

/** Milliseconds a lease lasts without a refresh: what a crash costs before others may act. */
export const LEASE = 3000;
/** Between two tries to take a lease again, milliseconds: others wait for it, where the whole fleet lost theirs. */
const LONGEST_PAUSE = 500;
/** How many former ids a lease names. */
const FORMER = 16;

export interface PresenceListener {
  /** The lease lapsed: nothing that needed it stands. */
  lapsed(): void;
  /** About to be held under this id. */
  naming(id: string): void;
  /**
   * A new id is held after a lapse; `former` are the old ones. Resolves when what they owned is taken over; called again
   * where it rejects.
   */
  renamed(former: readonly string[]): Promise<void>;
  /** All is as it was, under the new id. */
  regained(): void;
}

export class Presence {
  readonly #bucket: Bucket;
  readonly #topology: Topology;
  readonly #log: Log;
  #listener: PresenceListener | undefined;
  #id: string = uniqueId();
  #lease: Lease | undefined;
  #state: "taking" | "held" | "lapsed" | "released" = "taking";
  /** Every id this process had before: whoever reads its lease knows that what was theirs is this one's. */
  readonly #former: Set<string> = new Set<string>();

  constructor(bucket: Bucket, topology: Topology, log: Log) {
    this.#bucket = bucket;
    this.#topology = topology;
    this.#log = log;
  }

  get id(): string {
    return this.#id;
  }

  /** By this process's own clock, in this turn. */
  held(): boolean {
    return this.#lease?.held() ?? false;
  }

  /**
   * Waits until every lease in the bucket is gone or was renewed. Resolves to the replicas that live.
   * A lease left by a crash is gone within its time.
   */
  async others(): Promise<readonly string[]> {
    const seen = new Map([...this.#topology.replicas()].map(([id, record]) => [id, record.revision]));
    const end = Date.now() + LEASE + 2500;
    for (;;) {
      const waiting = [...seen].filter(([id, revision]) => this.#topology.replicas().get(id)?.revision === revision);
      if (waiting.length === 0 || Date.now() > end) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return [...this.#topology.replicas().keys()].filter((id) => id !== this.#id);
  }

  async take(listener: PresenceListener): Promise<void> {
    this.#listener = listener;
    await this.#take();
    this.#state = "held";
  }

  async release(): Promise<void> {
    this.#state = "released";
    const lease = this.#lease;
    this.#lease = undefined;
    await lease?.release();
  }

  async #take(): Promise<void> {
    this.#listener?.naming(this.#id);
    const lease = await Lease.take(
      this.#bucket,
      replicaKey(this.#id),
      { replica: this.#id, pid: process.pid, former: [...this.#former].slice(-FORMER) },
      {
        ttl: LEASE,
        lapsed: () => void this.#lapsed(),
      },
    );
    if (lease === "conflict") throw new Error(`the replica id ${this.#id} is taken`);
    if (this.#isReleased()) await lease.release();
    else this.#lease = lease;
  }

  #isReleased(): boolean {
    return this.#state === "released";
  }

  /** The bus was away, or this process stood still, for longer than the lease. */
  async #lapsed(): Promise<void> {
    // In the state `lapsed` the loop below sees to it.
    if (this.#state !== "held") return;
    this.#state = "lapsed";
    // What was taken over under an id that lapsed as well is taken over from that one too.
    const former = [this.#id];
    let taken = this.#id;
    this.#log.warn({ replica: this.#id }, "the presence lease lapsed; taking a new one");
    this.#listener?.lapsed();
    for (let pause = 100; !this.#isReleased(); pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        if (!this.held()) {
          if (!former.includes(taken)) former.push(taken);
          this.#former.add(taken);
          this.#id = uniqueId();
          await this.#take();
          taken = this.#id;
        }
        await this.#topology.fence();
        await this.#listener?.renamed(former);
        if (this.#isReleased()) return;
        if (!this.held()) continue;
        this.#state = "held";
        this.#listener?.regained();
        this.#log.info({ replica: this.#id }, "the presence lease is held again");
        return;
      } catch (error) {
        this.#log.debug({ err: error }, "no presence lease yet");
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }
}
