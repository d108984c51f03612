/**
 * Leadership: one replica makes every change of the topology (design §4, ONE WRITER).
 *
 * Responsibilities: holding the leader's lease, reconciling before leading, and answering in any turn whether this process
 * may write. Used by: replica (one each), lead (forwards), every writer in the core (asserts). Separate because it is
 * the one answer that a stale process must never get wrong.
 *
 *   following → (the lease is free) → reconciling → leading → (lapsed) → following … → closed
 */
import { type Bucket, LEADER_KEY, Lease, type Permit, type Topology } from "@amqp/topology";
import type { Log } from "./log.ts";
import { LEASE, type Presence } from "./presence.ts";

/** What a writer gets who is not the leader (any more): whoever forwarded it finds the new one. */
export class NotLeading extends Error {
  override readonly name: string = "NotLeading";
}

/** Milliseconds between two tries for a lease that is free, or to reconcile after a failure. */
const PAUSE = 200;

export class Leadership {
  readonly #bucket: Bucket;
  readonly #topology: Topology;
  readonly #presence: Presence;
  readonly #log: Log;
  readonly #mayLead: boolean;
  readonly #reconcile: () => Promise<void>;
  #state: "following" | "reconciling" | "leading" | "closed" = "following";
  #lease: Lease | undefined;
  #trying: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `mayLead` false: it never seeks the lease, and others lead. `reconcile` runs before this replica leads, with the right to write. */
  constructor(
    bucket: Bucket,
    topology: Topology,
    presence: Presence,
    log: Log,
    mayLead: boolean,
    reconcile: () => Promise<void>,
  ) {
    this.#mayLead = mayLead;
    this.#bucket = bucket;
    this.#topology = topology;
    this.#presence = presence;
    this.#log = log;
    this.#reconcile = reconcile;
  }

  /** Whether this replica answers for the topology now. */
  get leading(): boolean {
    return this.#state === "leading" && this.mayWrite;
  }

  /** By this process's own clock, in this turn: also true while it reconciles. */
  get mayWrite(): boolean {
    return this.#lease?.held() === true && this.#presence.held();
  }

  /** {@link assert}, for what asks it later. */
  readonly permit: Permit = () => this.assert();

  /** Throws {@link NotLeading} in the turn of a write that this replica has lost the right to. */
  assert(): void {
    if (!this.mayWrite) throw new NotLeading("this replica does not lead (any more)");
  }

  /** Tries for the lease now, if it is free; resolves when it is known who leads. Called again whenever it may be free. */
  seek(): Promise<void> {
    this.#trying ??= this.#seek().finally(() => {
      this.#trying = undefined;
    });
    return this.#trying;
  }

  /** At boot: an operator who starts a second replica sees that it joined. */
  tell(): void {
    const leader = this.#topology.leader();
    if (this.#mayLead && this.#state === "following" && leader !== undefined)
      this.#log.info({ replica: this.#presence.id, leader }, "this replica follows; another one leads the topology");
  }

  async close(): Promise<void> {
    this.#state = "closed";
    clearTimeout(this.#timer);
    await this.#trying?.catch(() => undefined);
    await this.#lease?.release();
    this.#lease = undefined;
  }

  /** The presence got a new id: what was led under the old one is led no more. */
  async resign(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    if (this.#state !== "closed") this.#state = "following";
    await lease?.release().catch(() => undefined);
  }

  async #seek(): Promise<void> {
    if (!this.#mayLead || this.#state !== "following" || !this.#presence.held()) return;
    if (this.#topology.leader() !== undefined) return;
    try {
      const value = { replica: this.#presence.id };
      const lease = await Lease.take(this.#bucket, LEADER_KEY, value, { ttl: LEASE, lapsed: () => this.#lapsed() });
      if (lease === "conflict") {
        await this.#topology.fence();
        // Its holder may have gone in between, unseen.
        if (this.#topology.leader() === undefined) this.#again();
        return;
      }
      this.#lease = lease;
      await this.#lead();
    } catch (error) {
      this.#log.warn({ err: error }, "could not become the topology leader; trying again");
      await this.resign();
      this.#again();
    }
  }

  async #lead(): Promise<void> {
    this.#state = "reconciling";
    // What earlier leaders wrote must be in the mirror before anything is decided by it.
    await this.#topology.fence();
    await this.#reconcile();
    this.assert();
    this.#state = "leading";
    this.#log.info({ replica: this.#presence.id }, "this replica leads the topology");
  }

  #again(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.seek(), PAUSE).unref();
  }

  #lapsed(): void {
    if (this.#state === "closed") return;
    this.#log.warn({ replica: this.#presence.id }, "the topology leader's lease lapsed");
    this.#lease = undefined;
    this.#state = "following";
    this.#again();
  }
}
