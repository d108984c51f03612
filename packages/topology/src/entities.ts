/**
 * The records of the topology bucket: what stands behind an exchange, a queue, a binding and a replica.
 *
 * Responsibilities: the shapes of the records and the spelling of their keys; nothing here does I/O.
 * Used by: bucket, topology, lease, and the broker's verbs.
 * Separate because these shapes are a format on the bus: replicas of different versions read each other's.
 */
import type { ExchangeKind } from "@amqp/translator";

/** An exchange as stored under `x.<exchange>`. */
export interface ExchangeRecord {
  /** `deleting`: its bindings are being closed; absent to every client, finished by whoever leads. */
  readonly state: "ready" | "deleting";
  readonly kind: ExchangeKind;
  readonly durable: boolean;
  readonly autoDelete: boolean;
  readonly internal: boolean;
  /** The declared arguments in a canonical form of the front end's choice; compared, never read. */
  readonly arguments: string;
}

/** Who holds an exclusive queue: a connection of a replica. An owner whose lease is gone is gone. */
export interface Owner {
  readonly replica: string;
  readonly connection: string;
}

/** A queue as stored under `q.<queue>`. */
export interface QueueRecord {
  /** `making`: no consumer yet, not routable; `deleting`: absent to every client, being drained. */
  readonly state: "making" | "ready" | "deleting";
  readonly durable: boolean;
  readonly autoDelete: boolean;
  readonly exclusive: Owner | null;
  readonly type: "classic" | "quorum";
  /** As in {@link ExchangeRecord}. */
  readonly arguments: string;
  /**
   * An auto-delete queue that had a consumer since the fleet started: it goes with its last one, also where a leader died
   * in between.
   */
  readonly consumed: boolean;
  /** The stream sequence above which the implicit binding to the default exchange holds. */
  readonly from: number;
  /** What is stored at or below it may have been delivered before the bus lost its count: whoever comes later flags it. */
  readonly suspect?: number;
}

/**
 * The part of the log in which a binding holds: sequences above `from`, up to and including `until`
 * (absent while the binding stands). It belongs to one life of its queue and its exchange, named by
 * the revision that created each: a redeclared one revives nothing.
 *
 *   open (no `until`) → closing (`until` and `closing`) → closed (`until` alone)
 */
export interface Interval {
  readonly from: number;
  readonly until?: number;
  /**
   * The binding is being undone, and its end is not known yet: it is no less than `until`, and what lies above that is
   * undecided. Versions before this field take `until` for the end, which is what they would have written.
   */
  readonly closing?: true;
  readonly queueId: number;
  readonly exchangeId: number;
  /** The exchange's kind then: the key's meaning must not change under messages already queued. */
  readonly kind: ExchangeKind;
}

/** A binding as stored under `b.<queue>.<exchange>.k<key>[.<arguments' hash>]`. */
export interface BindingRecord {
  readonly arguments: string;
  readonly intervals: readonly Interval[];
}

/** What every mirrored entity has beside its record. */
export interface Stored {
  /** The revision of its latest write: what the next write must expect. */
  readonly revision: number;
  /** The revision that created this life of it: its identity. */
  readonly id: number;
}

/** An exchange of the mirror. */
export interface Exchange extends ExchangeRecord, Stored {
  readonly name: string;
}

/** A queue of the mirror. */
export interface Queue extends QueueRecord, Stored {
  readonly name: string;
}

/** A binding of the mirror. */
export interface Binding extends BindingRecord, Stored {
  readonly queue: string;
  readonly exchange: string;
  readonly key: string;
}

/** The live lease of a replica, as stored under `r.<replica>`. */
export interface ReplicaRecord {
  /** The revision of its latest refresh. */
  readonly revision: number;
  /** What the replica said of itself when it took the lease. */
  readonly value: Readonly<Record<string, unknown>>;
}

/** How the fleet last stopped, as stored under `fleet`. */
export interface Fleet {
  /** True after a graceful stop of its last replica; false while it serves, and after a crash. */
  readonly clean: boolean;
  /** 0 where nothing is stored yet. */
  readonly revision: number;
}
