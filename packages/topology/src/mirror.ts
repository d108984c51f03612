/**
 * The mirror: the bucket's log applied, entry by entry, to what the broker looks things up in.
 *
 * Used by: topology, which feeds it from a watch. It does no I/O and is no more than a cache of the bucket (HIP §1).
 * Separate from topology so that the meaning of the records can be tested without a bus, and so that nothing here can
 * wait: an entry is applied within one call.
 */
import type { Entry } from "./bucket.ts";
import type { Binding, Exchange, Fleet, Queue, ReplicaRecord } from "./entities.ts";
import { Intervals } from "./intervals.ts";
import { type BindingPlace, bindingKey, FLEET_KEY, type ParsedKey, parseKey } from "./keys.ts";
import { decodeRecord, idOf, type RawRecord, toBinding, toExchange, toQueue, toReplica } from "./records.ts";
import { Routes } from "./routes.ts";

/**
 * Who is told of changes, after they are in the mirror. An entity may be replaced by another life of it in one step
 * (its deletion was superseded before it was seen): compare the ids.
 */
export interface TopologyListener {
  queueChanged(name: string, queue: Queue | undefined, before: Queue | undefined): void;
  /** A binding's record changed, or is gone (undefined). */
  bindingChanged?(queue: string, binding: Binding | undefined): void;
  exchangeChanged?(name: string, exchange: Exchange | undefined, before: Exchange | undefined): void;
  /** A replica's lease appeared, or ended. Refreshes are not told. */
  replicaChanged?(id: string, alive: boolean): void;
  /** Another replica leads, or none (undefined). */
  leaderChanged?(id: string | undefined): void;
}

/** A key's latest value, kept to write back what this version does not know. */
interface Held {
  readonly raw: RawRecord;
  readonly revision: number;
}

const NO_BINDINGS: readonly Binding[] = [];

/** The entities of the bucket, as of the last entry applied. */
export class Mirror {
  /** Told of changes; absent until somebody cares. */
  listener: TopologyListener | undefined;
  readonly #root: string;
  readonly #unreadable: (key: string) => void;
  readonly #held = new Map<string, Held>();
  readonly #exchanges = new Map<string, Exchange>();
  readonly #queues = new Map<string, Queue>();
  readonly #bindings = new Map<string, Binding>();
  /** Exchange → bucket key → binding. */
  readonly #from = new Map<string, Map<string, Binding>>();
  /** Queue name → its compiled bindings. */
  readonly #intervals = new Map<string, Intervals>();
  readonly #replicas = new Map<string, ReplicaRecord>();
  readonly #routes: Routes;
  #leader: string | undefined;
  #version = 0;
  #revision = 0;

  /** `root` is the first word of every subject; `unreadable` is told of a record that no version could have written. */
  constructor(root: string, unreadable: (key: string) => void = () => {}) {
    this.#root = root;
    this.#unreadable = unreadable;
    this.#routes = new Routes(root, ({ binding, interval }) => {
      const queue = this.#queues.get(binding.queue);
      if (queue?.state !== "ready" || queue.id !== interval.queueId) return false;
      const exchange = this.#exchanges.get(binding.exchange);
      return exchange?.state === "ready" && exchange.id === interval.exchangeId;
    });
  }

  /** Rises with every change of an exchange, a queue or a binding. */
  get version(): number {
    return this.#version;
  }

  get size(): { readonly queues: number; readonly bindings: number } {
    return { queues: this.#queues.size, bindings: this.#bindings.size };
  }

  /** The highest revision applied. */
  get revision(): number {
    return this.#revision;
  }

  exchange(name: string): Exchange | undefined {
    return this.#exchanges.get(name);
  }

  queue(name: string): Queue | undefined {
    return this.#queues.get(name);
  }

  exchanges(): Iterable<Exchange> {
    return this.#exchanges.values();
  }

  queues(): Iterable<Queue> {
    return this.#queues.values();
  }

  bindingsOf(queue: string): readonly Binding[] {
    return this.#intervals.get(queue)?.bindings ?? NO_BINDINGS;
  }

  bindingsFrom(exchange: string): readonly Binding[] {
    const bindings = this.#from.get(exchange);
    return bindings === undefined ? NO_BINDINGS : [...bindings.values()];
  }

  binding(place: BindingPlace): Binding | undefined {
    return this.#bindings.get(bindingKey(place));
  }

  replicas(): ReadonlyMap<string, ReplicaRecord> {
    return this.#replicas;
  }

  /** The replica that holds the leader's lease. */
  leader(): string | undefined {
    return this.#leader;
  }

  fleet(): Fleet {
    const held = this.#held.get(FLEET_KEY);
    return { clean: held?.raw.clean === true, revision: held?.revision ?? 0 };
  }

  /** The record behind a key if `revision` is its latest one here. */
  raw(key: string, revision: number): RawRecord | undefined {
    const held = this.#held.get(key);
    return held?.revision === revision ? held.raw : undefined;
  }

  /** {@link Topology.routes}. */
  routes(exchange: string, routingKey: string, subject: string): boolean {
    // The default exchange reaches the queue of that name and nothing else (HIP §2); it cannot be bound.
    if (exchange === "") return this.#queues.get(routingKey)?.state === "ready";
    return this.#routes.matches(exchange, subject);
  }

  /** {@link Topology.holds}. */
  holds(queue: string, subject: string, sequence: number): boolean {
    return this.#intervals.get(queue)?.holds(subject, sequence) === true;
  }

  /** {@link Topology.isUndecided}. */
  isUndecided(queue: string, subject: string, sequence: number): boolean {
    return this.#intervals.get(queue)?.isUndecided(subject, sequence) === true;
  }

  /** {@link Topology.filters}. */
  filters(queue: string): string[] {
    return (this.#intervals.get(queue) ?? new Intervals(queue, this.#root)).filters();
  }

  /** Applies one entry of the bucket's log; entries come in the log's order. */
  apply(entry: Entry): void {
    if (entry.revision > this.#revision) this.#revision = entry.revision;
    const parsed = parseKey(entry.key);
    if (parsed === undefined) return;
    const raw = entry.value === undefined ? undefined : decodeRecord(entry.value);
    if (raw === undefined) this.#held.delete(entry.key);
    else this.#held.set(entry.key, { raw, revision: entry.revision });
    const readable = this.#applyTo(parsed, entry, raw);
    if (entry.value !== undefined && !readable) this.#unreadable(entry.key);
  }

  /** Whether the record could be read; an unreadable one counts as absent. */
  #applyTo(parsed: ParsedKey, entry: Entry, raw: RawRecord | undefined): boolean {
    const { key, revision } = entry;
    const stored = raw === undefined ? undefined : { revision, id: idOf(raw, revision) };
    switch (parsed.kind) {
      case "exchange": {
        const record = raw && toExchange(raw);
        this.#setExchange(parsed.name, record && stored && { name: parsed.name, ...record, ...stored });
        return record !== undefined;
      }
      case "queue": {
        const record = raw && toQueue(raw);
        this.#setQueue(parsed.name, record && stored && { name: parsed.name, ...record, ...stored });
        return record !== undefined;
      }
      case "binding": {
        const record = raw && toBinding(raw);
        const { queue, exchange, key: routingKey } = parsed;
        const binding = record && stored && { queue, exchange, key: routingKey, ...record, ...stored };
        this.#setBinding(key, queue, exchange, binding);
        return record !== undefined;
      }
      case "replica":
        this.#setReplica(parsed.name, raw && toReplica(raw, revision));
        return raw !== undefined;
      case "leader":
        return this.#setLeader(raw);
      case "fleet":
        return raw !== undefined;
    }
  }

  #setExchange(name: string, exchange: Exchange | undefined): void {
    const before = this.#exchanges.get(name);
    if (before === undefined && exchange === undefined) return;
    if (exchange === undefined) this.#exchanges.delete(name);
    else this.#exchanges.set(name, exchange);
    this.#routes.forget(name);
    this.#version++;
    this.listener?.exchangeChanged?.(name, exchange, before);
  }

  #setQueue(name: string, queue: Queue | undefined): void {
    const before = this.#queues.get(name);
    if (before === undefined && queue === undefined) return;
    if (queue === undefined) this.#queues.delete(name);
    else this.#queues.set(name, queue);
    const intervals = this.#intervalsOf(name);
    intervals.setQueue(queue);
    for (const { exchange } of intervals.bindings) this.#routes.forget(exchange);
    if (intervals.empty) this.#intervals.delete(name);
    this.#version++;
    this.listener?.queueChanged(name, queue, before);
  }

  #setBinding(key: string, queue: string, exchange: string, binding: Binding | undefined): void {
    if (binding === undefined && !this.#bindings.has(key)) return;
    const from = this.#from.get(exchange) ?? new Map<string, Binding>();
    if (binding === undefined) {
      this.#bindings.delete(key);
      from.delete(key);
      if (from.size === 0) this.#from.delete(exchange);
    } else {
      this.#bindings.set(key, binding);
      from.set(key, binding);
      this.#from.set(exchange, from);
    }
    const intervals = this.#intervalsOf(queue);
    intervals.setBinding(key, binding);
    if (intervals.empty) this.#intervals.delete(queue);
    this.#routes.setBinding(key, exchange, binding);
    this.#version++;
    this.listener?.bindingChanged?.(queue, binding);
  }

  #setReplica(id: string, replica: ReplicaRecord | undefined): void {
    const before = this.#replicas.has(id);
    if (replica === undefined) this.#replicas.delete(id);
    else this.#replicas.set(id, replica);
    const alive = replica !== undefined;
    if (alive !== before) this.listener?.replicaChanged?.(id, alive);
  }

  #setLeader(raw: RawRecord | undefined): boolean {
    const before = this.#leader;
    this.#leader = typeof raw?.replica === "string" ? raw.replica : undefined;
    if (this.#leader !== before) this.listener?.leaderChanged?.(this.#leader);
    return this.#leader !== undefined;
  }

  #intervalsOf(queue: string): Intervals {
    let intervals = this.#intervals.get(queue);
    if (intervals === undefined) {
      intervals = new Intervals(queue, this.#root);
      this.#intervals.set(queue, intervals);
    }
    return intervals;
  }
}
