/**
 * The fleet: what a replica must know of the others, and what it must wait for.
 *
 * Responsibilities: who leads, the barrier, which replicas live, who consumes and who holds what over all of them.
 * Used by: the verbs. Separate because it is the one place that several replicas change: a lone process is its own
 * leader, forwards nothing, and its barrier is its own mirror (design §4).
 */
import type { Owner, Topology } from "@amqp/topology";
import type { Cursors } from "./cursors.ts";

export class Fleet {
  readonly #topology: Topology;
  readonly #cursors: Cursors;
  readonly #self: () => string;

  /** `self` is this replica's present id: it changes when its lease lapsed. */
  constructor(topology: Topology, cursors: Cursors, self: () => string) {
    this.#topology = topology;
    this.#cursors = cursors;
    this.#self = self;
  }

  get replica(): string {
    return this.#self();
  }

  /** Resolves when every live replica has applied that revision. */
  async barrier(revision: number): Promise<void> {
    await this.#topology.applied(revision);
  }

  /** An owner whose lease is gone is gone. */
  lives(owner: Owner): boolean {
    return owner.replica === this.#self() || this.#topology.replicas().has(owner.replica);
  }

  /** Consumers of a queue on all live replicas. */
  consumers(queue: string): number {
    return this.#cursors.present(queue)?.consumers ?? 0;
  }

  /** Whether one of them is exclusive. */
  exclusivelyConsumed(queue: string): boolean {
    return this.#cursors.present(queue)?.hasExclusive ?? false;
  }
}
