/**
 * Who consumes what, over the whole fleet, as the leader knows it (design §4, WHO CONSUMES).
 *
 * Responsibilities: which replicas have consumers of a queue, whether one of them is exclusive, and whose were the last.
 * Used by: queues (exclusive consumption, if-unused, auto-delete). Separate because it is the leader's only memory: a new
 * leader learns it from the replicas.
 */

/** What a replica tells a new leader of one queue that it consumes. */
export interface Consuming {
  readonly queue: string;
  readonly exclusive: boolean;
}

export class Consumers {
  /** Queue → replica → whether its consumer there is exclusive. */
  readonly #queues: Map<string, Map<string, boolean>> = new Map<string, Map<string, boolean>>();

  /** Whether a consumer of this replica may join: exclusive ones are alone. Its own replica has looked at its own. */
  mayJoin(queue: string, replica: string, exclusive: boolean): boolean {
    for (const [other, isExclusive] of this.#queues.get(queue) ?? [])
      if (other !== replica && (exclusive || isExclusive)) return false;
    return true;
  }

  join(queue: string, replica: string, exclusive: boolean): void {
    const replicas = this.#queues.get(queue) ?? new Map<string, boolean>();
    this.#queues.set(queue, replicas.set(replica, exclusive));
  }

  /** The replica's last consumer of the queue went. */
  leave(queue: string, replica: string): void {
    const replicas = this.#queues.get(queue);
    replicas?.delete(replica);
    if (replicas?.size === 0) this.#queues.delete(queue);
  }

  has(queue: string): boolean {
    return this.#queues.has(queue);
  }

  /** The replica is gone; resolves to the queues that lost their last consumer with it. */
  replicaGone(replica: string): readonly string[] {
    const orphaned: string[] = [];
    for (const [queue, replicas] of this.#queues) {
      if (!replicas.delete(replica) || replicas.size > 0) continue;
      this.#queues.delete(queue);
      orphaned.push(queue);
    }
    return orphaned;
  }

  /** The replica goes on under another id. */
  renamed(before: string, after: string): void {
    for (const replicas of this.#queues.values()) {
      const isExclusive = replicas.get(before);
      if (isExclusive === undefined) continue;
      replicas.delete(before);
      replicas.set(after, isExclusive);
    }
  }

  forgetQueue(queue: string): void {
    this.#queues.delete(queue);
  }

  clear(): void {
    this.#queues.clear();
  }
}
