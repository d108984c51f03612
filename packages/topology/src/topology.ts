/**
 * The topology: what exchanges, queues and bindings there are, read from a mirror and written to the bucket.
 *
 * Used by: the broker's verbs, which decide; this only keeps. Every write is a compare-and-set and resolves when the own
 * mirror has it, so that whoever is answered next sees it (HIP §1). Separate from the mirror because this waits and that
 * must not.
 */
import type { Bucket, Permit, Watch, Written } from "./bucket.ts";
import type {
  Binding,
  Exchange,
  ExchangeRecord,
  Fleet,
  Interval,
  Queue,
  QueueRecord,
  ReplicaRecord,
  Stored,
} from "./entities.ts";
import { Fence, latestRevision } from "./fence.ts";
import { type BindingPlace, bindingKey, exchangeKey, FLEET_KEY, queueKey } from "./keys.ts";
import { Mirror, type TopologyListener } from "./mirror.ts";
import { encodeRecord } from "./records.ts";

export interface TopologyOptions {
  /** The first words of every subject: `amqp`, or a namespace's own. */
  readonly root: string;
  /** Told once: the bucket is gone for good (deleted, set back, connection closed), and the mirror is stale from now on. */
  lost(error: Error): void;
  /** A value in the bucket is no record; it counts as absent, and its key stays taken. */
  unreadable?(key: string): void;
  /** See {@link Permit}: of every write of an exchange, a queue or a binding. */
  readonly permit?: Permit;
}

/** The mirror of the bucket and the writes to it. */
export class Topology {
  /** The first words of every subject, for whoever spells one. */
  readonly root: string;
  readonly #bucket: Bucket;
  readonly #mirror: Mirror;
  readonly #watch: Watch;
  readonly #fence: Fence;
  readonly #permit: Permit | undefined;

  private constructor(bucket: Bucket, mirror: Mirror, watch: Watch, options: TopologyOptions) {
    const { root, lost, permit } = options;
    this.root = root;
    this.#permit = permit;
    this.#bucket = bucket;
    this.#mirror = mirror;
    this.#watch = watch;
    this.#fence = new Fence(async () => {
      const seen = mirror.revision;
      const last = await latestRevision(() => bucket.lastRevision(), seen);
      if (last < seen) {
        // What was answered from revisions that no longer exist cannot be taken back: fail closed (HIP §5).
        const error = new Error(`the bucket went back from revision ${seen} to ${last}: was its stream restored?`);
        lost(error);
        throw error;
      }
      await watch.caughtUp(last);
    });
  }

  /**
   * Watches the bucket; resolves when its initial replay is in the mirror, before which no client may be served (HIP
   * §1). Rejects where the bucket cannot be watched.
   */
  static async open(bucket: Bucket, options: TopologyOptions): Promise<Topology> {
    const mirror = new Mirror(options.root, (key) => options.unreadable?.(key));
    let isLost: boolean = false;
    const lost = (error: Error): void => {
      if (!isLost) options.lost(error);
      isLost = true;
    };
    const watch = await bucket.watch({ entry: (entry) => mirror.apply(entry), lost });
    return new Topology(bucket, mirror, watch, { ...options, lost });
  }

  /** Rises with every change of an exchange, a queue or a binding that the mirror has seen. */
  get version(): number {
    return this.#mirror.version;
  }

  /** How many queues there are, in any state, and how many records of bindings. */
  get size(): { readonly queues: number; readonly bindings: number } {
    return this.#mirror.size;
  }

  /** The highest revision of the bucket that is in the mirror. */
  get revision(): number {
    return this.#mirror.revision;
  }

  /** The exchange of that name in any state; never the default exchange, which is not stored. */
  exchange(name: string): Exchange | undefined {
    return this.#mirror.exchange(name);
  }

  /** The queue of that name in any state. */
  queue(name: string): Queue | undefined {
    return this.#mirror.queue(name);
  }

  exchanges(): Iterable<Exchange> {
    return this.#mirror.exchanges();
  }

  queues(): Iterable<Queue> {
    return this.#mirror.queues();
  }

  /** All binding records of that queue name, those of an earlier life of it included. */
  bindingsOf(queue: string): readonly Binding[] {
    return this.#mirror.bindingsOf(queue);
  }

  /** All binding records of that exchange name, those of an earlier life of it included. */
  bindingsFrom(exchange: string): readonly Binding[] {
    return this.#mirror.bindingsFrom(exchange);
  }

  /** One binding's record; `args` are its canonical arguments, empty where it has none. */
  binding(queue: string, exchange: string, key: string, args: string): Binding | undefined {
    return this.#mirror.binding({ queue, exchange, key, arguments: args });
  }

  /** The live leases of replicas: id → record. A live view, not a copy. */
  replicas(): ReadonlyMap<string, ReplicaRecord> {
    return this.#mirror.replicas();
  }

  /** The replica that holds the leader's lease, if any does. */
  leader(): string | undefined {
    return this.#mirror.leader();
  }

  /** How the fleet last stopped; not clean where nothing is stored. */
  fleet(): Fleet {
    return this.#mirror.fleet();
  }

  /**
   * Whether a ready queue takes what is published to this exchange now: by an open interval of the present life of the
   * queue and of the exchange, or, on the default exchange, by its name. `subject` is the translator's for the same
   * exchange and key. A `false` is provisional until {@link fence} has passed. Does not allocate for a known subject.
   */
  routes(exchange: string, routingKey: string, subject: string): boolean {
    return this.#mirror.routes(exchange, routingKey, subject);
  }

  /**
   * Whether the message stored at this sequence on this subject was ever put in this queue: by its implicit binding or
   * any interval, closed ones included, of its present life. A `false` is provisional until {@link fence} has passed.
   * Does not allocate for a known subject.
   */
  holds(queue: string, subject: string, sequence: number): boolean {
    return this.#mirror.holds(queue, subject, sequence);
  }

  /**
   * Whether nobody knows yet if that message is in this queue: no interval holds it, but one may, whose end is not written
   * yet ({@link Interval.closing}). It is neither to be delivered nor to be dropped. Provisional, as {@link holds}.
   */
  isUndecided(queue: string, subject: string, sequence: number): boolean {
    return this.#mirror.isUndecided(queue, subject, sequence);
  }

  /** The filters that the queue's consumer must have by the records: an antichain, sorted, never empty. */
  filters(queue: string): string[] {
    return this.#mirror.filters(queue);
  }

  /** Resolves when the mirror holds everything up to this revision of the bucket. */
  applied(revision: number): Promise<void> {
    return this.#watch.caughtUp(revision);
  }

  /**
   * Catches up with the bucket as it is at this call. All calls of one turn share one request, and no call is answered by
   * a request that was sent before it. Rejects where the bus does not answer.
   */
  fence(): Promise<void> {
    return this.#fence.pass();
  }

  /** One listener is told of changes; another call replaces it. */
  listen(listener: TopologyListener): void {
    this.#mirror.listener = listener;
  }

  /** Stops watching: nothing changes in the mirror any more. */
  close(): Promise<void> {
    return this.#watch.stop();
  }

  /**
   * Writes a new exchange. As with every write here: resolves when the own mirror has it; "conflict" means that somebody
   * else was first, and that the mirror has caught up with him; a rejection is an unknown outcome (fence, then look).
   */
  async createExchange(name: string, record: ExchangeRecord): Promise<Exchange | "conflict"> {
    const stored = await this.#create(exchangeKey(name), record);
    return stored === "conflict" ? stored : { name, ...record, ...stored };
  }

  async updateExchange(exchange: Exchange, change: Partial<ExchangeRecord>): Promise<Exchange | "conflict"> {
    const stored = await this.#update(exchangeKey(exchange.name), exchange, change);
    return stored === "conflict" ? stored : { ...exchange, ...change, ...stored };
  }

  removeExchange(exchange: Exchange): Promise<"removed" | "conflict"> {
    return this.#remove(exchangeKey(exchange.name), exchange);
  }

  async createQueue(name: string, record: QueueRecord): Promise<Queue | "conflict"> {
    const stored = await this.#create(queueKey(name), record);
    return stored === "conflict" ? stored : { name, ...record, ...stored };
  }

  async updateQueue(queue: Queue, change: Partial<QueueRecord>): Promise<Queue | "conflict"> {
    const stored = await this.#update(queueKey(queue.name), queue, change);
    return stored === "conflict" ? stored : { ...queue, ...change, ...stored };
  }

  removeQueue(queue: Queue): Promise<"removed" | "conflict"> {
    return this.#remove(queueKey(queue.name), queue);
  }

  /** Writes the intervals of one binding. `present` is its record as it was read; undefined: there must be none. */
  async writeBinding(
    at: BindingPlace,
    intervals: readonly Interval[],
    present: Binding | undefined,
  ): Promise<Binding | "conflict"> {
    const record = { arguments: at.arguments, intervals };
    const key = bindingKey(at);
    const stored = await (present === undefined ? this.#create(key, record) : this.#update(key, present, record));
    if (stored === "conflict") return stored;
    return { queue: at.queue, exchange: at.exchange, key: at.key, ...record, ...stored };
  }

  removeBinding(binding: Binding): Promise<"removed" | "conflict"> {
    return this.#remove(bindingKey(binding), binding);
  }

  /** Writes how the fleet stopped; "conflict" where another replica wrote since {@link fleet} was read. */
  async writeFleet(clean: boolean): Promise<Fleet | "conflict"> {
    const { revision: known } = this.fleet();
    const record = encodeRecord({ ...this.#mirror.raw(FLEET_KEY, known), clean });
    const write = known === 0 ? this.#bucket.create(FLEET_KEY, record) : this.#bucket.update(FLEET_KEY, record, known);
    const revision = await this.#applied(write);
    return revision === "conflict" ? revision : { clean, revision };
  }

  async #create(key: string, record: object): Promise<Stored | "conflict"> {
    const revision = await this.#applied(this.#bucket.create(key, encodeRecord(record), this.#permit));
    return revision === "conflict" ? revision : { revision, id: revision };
  }

  async #update(key: string, { id, revision }: Stored, change: object): Promise<Stored | "conflict"> {
    // What this version does not know of the record is written back with it. Where the mirror is past the caller's
    // revision, the bucket is as well.
    const raw = this.#mirror.raw(key, revision);
    if (raw === undefined) return "conflict";
    const value = encodeRecord({ ...raw, ...change, id });
    const written = await this.#applied(this.#bucket.update(key, value, revision, this.#permit));
    return written === "conflict" ? written : { revision: written, id };
  }

  async #remove(key: string, { revision }: Stored): Promise<"removed" | "conflict"> {
    const written = await this.#applied(this.#bucket.remove(key, revision, this.#permit));
    return written === "conflict" ? written : "removed";
  }

  /** A write's outcome once the mirror has it; after a conflict, once the mirror has what it conflicted with. */
  async #applied(write: Promise<Written>): Promise<Written> {
    const written = await write;
    await (written === "conflict" ? this.fence() : this.applied(written));
    return written;
  }
}
