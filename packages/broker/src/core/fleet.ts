/**
 * The fleet: every live replica of this broker, as one replica sees it.
 *
 * Responsibilities: who lives, questions to all of the others with a bound on waiting, the barrier (design §4), and the
 * fleet's counts (design §6): consumers, and what clients hold. Used by: the verbs, answers, lead, sweeper. Separate
 * because it is the one place that knows that there are several; a lone process asks nobody.
 */
import type { Owner, Topology } from "@amqp/topology";
import type { Cursors } from "./cursors.ts";
import type { Log } from "./log.ts";
import { PeerAbsent, PeerRefused, PeerSilent, type Peers } from "./peers.ts";

/** One attempt to reach a replica, milliseconds. */
const ATTEMPT = 1000;
const PAUSE = 25;
/** How long a replica that lost its lease with all others may take to come back, milliseconds. */
const GATHERING = 4_000;
/** How long an ended lease is remembered. */
const REMEMBERED = 60_000;
/** How long a count waits for a replica before it is a lower bound. */
const COUNT_PATIENCE = 2000;

/** How long after a replica's end nobody vouches for what its clients were given last, milliseconds. */
const MOURNING = 30_000;

/** What a replica says of a queue. */
export interface Holding {
  readonly consumers: number;
  /** Sequences in its clients' hands, after everything it settled was processed by the bus. */
  readonly held: readonly number[];
  /** The highest sequence that went to a client; versions before this field do not say. */
  readonly written?: number;
}

function isUnanswered(error: unknown): boolean {
  return error instanceof PeerAbsent || error instanceof PeerSilent || error instanceof PeerRefused;
}

export class Fleet {
  readonly #topology: Topology;
  readonly #cursors: Cursors;
  readonly #peers: Peers;
  readonly #self: () => string;
  readonly #log: Log;
  #lostAt = Number.NEGATIVE_INFINITY;
  #restartedAt = Number.NEGATIVE_INFINITY;
  #returnedAt = Number.NEGATIVE_INFINITY;
  /** Whose lease ended of late, and when. */
  readonly #ended: Map<string, number> = new Map<string, number>();

  /** `self` is this replica's present id: it changes when its lease lapsed. */
  constructor(topology: Topology, cursors: Cursors, peers: Peers, self: () => string, log: Log) {
    this.#topology = topology;
    this.#cursors = cursors;
    this.#peers = peers;
    this.#self = self;
    this.#log = log;
  }

  get replica(): string {
    return this.#self();
  }

  /** The other replicas whose lease stands. */
  get others(): readonly string[] {
    const self = this.#self();
    return [...this.#topology.replicas().keys()].filter((id) => id !== self);
  }

  /** A replica's lease ended. */
  replicaGone(id: string): void {
    this.#lostAt = Date.now();
    this.#ended.set(id, this.#lostAt);
    for (const [other, at] of this.#ended) if (this.#lostAt - at > REMEMBERED) this.#ended.delete(other);
  }

  /** The bus came back from a crash: what it counted last is lost. */
  busRestarted(): void {
    this.#restartedAt = Date.now();
  }

  /** Whether one ended for good about when the bus crashed: what its clients were given last is known to nobody. */
  get hasLostCounts(): boolean {
    if (!this.lostOne || Date.now() - this.#restartedAt > MOURNING) return false;
    return [...this.#ended.keys()].some((id) => !this.owns(id));
  }

  /** Whether one ended lately: what its clients were given nobody can say any more. */
  get lostOne(): boolean {
    return Date.now() - this.#lostAt < MOURNING;
  }

  /** An owner whose lease is gone is gone, unless it has come back under another id, which says so. */
  lives(owner: Owner): boolean {
    return this.owns(owner.replica);
  }

  /** This replica's own lease ended, or it has one again: what ends about then may have ended for the same reason. */
  returned(): void {
    this.#returnedAt = Date.now();
  }

  /**
   * Where the bus could keep nobody's lease (it had no leader), none of those whose ended is known to be dead: resolves
   * when each has come back under another id, or had the time for it.
   */
  async gathered(): Promise<void> {
    const isMissing = (): boolean => [...this.#ended.keys()].some((id) => !this.owns(id));
    while (Date.now() - this.#returnedAt < GATHERING && isMissing())
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }

  /** Whether that id is, or was, a live replica's. */
  owns(id: string): boolean {
    const replicas = this.#topology.replicas();
    if (id === this.#self() || replicas.has(id)) return true;
    for (const { value } of replicas.values())
      if (Array.isArray(value.former) && value.former.includes(id)) return true;
    return false;
  }

  /**
   * Asks every other live replica, each until it answers or its lease is gone; no longer than `patience` milliseconds
   * where that is given. Resolves to the answers, by replica, and to who gave none though it lives.
   */
  async everyone<T>(
    question: string,
    details: unknown,
    patience: number = Number.POSITIVE_INFINITY,
  ): Promise<{ readonly answers: ReadonlyMap<string, T>; readonly silent: readonly string[] }> {
    const { others } = this;
    const answers = new Map<string, T>();
    const silent: string[] = [];
    const end = Date.now() + patience;
    await Promise.all(
      others.map(async (replica) => {
        while (this.#topology.replicas().has(replica)) {
          const left = end - Date.now();
          if (left <= 0) {
            silent.push(replica);
            return;
          }
          try {
            answers.set(replica, (await this.#peers.ask(replica, question, details, Math.min(ATTEMPT, left))) as T);
            return;
          } catch (error) {
            // Also one that could not say: its mirror or its bus is gone, and its lease ends with them.
            if (!isUnanswered(error)) throw error;
            await new Promise((resolve) => setTimeout(resolve, PAUSE));
          }
        }
      }),
    );
    return { answers, silent };
  }

  /** Resolves when every live replica has applied that revision. */
  async barrier(revision: number): Promise<void> {
    await this.#topology.applied(revision);
    if (this.others.length > 0) await this.everyone("applied", { revision });
  }

  /** Consumers of a queue on all live replicas; a lower bound, which is logged, while one of them is silent. */
  async consumers(queue: string): Promise<number> {
    const own = this.#cursors.present(queue)?.consumers ?? 0;
    let all = own;
    for (const holding of (await this.#holdings(queue)).values()) all += holding.consumers;
    return all;
  }

  /** What the other replicas' clients hold of a queue. */
  async heldElsewhere(queue: string): Promise<ReadonlySet<number>> {
    const all = new Set<number>();
    for (const { held } of (await this.#holdings(queue)).values()) for (const sequence of held) all.add(sequence);
    return all;
  }

  async #holdings(queue: string): Promise<ReadonlyMap<string, Holding>> {
    if (this.others.length === 0) return new Map();
    const { answers, silent } = await this.everyone<Holding>("holding", { queue }, COUNT_PATIENCE);
    if (silent.length > 0)
      this.#log.warn({ queue, silent }, "a replica did not answer: the counts of this queue are lower bounds");
    return answers;
  }
}
