/**
 * The cursors of this process: one QueueCursor for each life of a queue that a client here has touched.
 *
 * Responsibilities: making them when they are first needed, ending them when their queue is gone, and passing on what
 * happens to the bus. Used by: replica (one each), the verbs, answers, fleet. Separate because a cursor lives as long
 * as its queue, not as long as any consumer: it remembers what was written to a socket before (the redelivered flag).
 */
import type { Queue, Topology } from "@amqp/topology";
import type { Bus } from "./bus.ts";
import { type CursorOptions, QueueCursor } from "./queue.ts";

/** How long after a restart of the bus a queue's record may not yet say what its replicas had delivered, milliseconds. */
const UNTOLD = 30_000;

interface Held {
  readonly queueId: number;
  readonly cursor: QueueCursor;
}

export class Cursors {
  readonly #bus: Bus;
  readonly #topology: Topology;
  readonly #options: CursorOptions;
  readonly #cursors: Map<string, Held> = new Map<string, Held>();
  #restartedAt = Number.NEGATIVE_INFINITY;

  constructor(bus: Bus, topology: Topology, options: CursorOptions) {
    this.#bus = bus;
    this.#topology = topology;
    this.#options = options;
  }

  /** The cursor of this life of the queue. */
  of(queue: Queue): QueueCursor {
    const present = this.#cursors.get(queue.name);
    if (present?.queueId === queue.id) return present.cursor;
    present?.cursor.gone();
    const cursor = new QueueCursor(queue.name, this.#bus, this.#topology, this.#options);
    // Neither does this one know what others had delivered before; until it is told, nothing is asked for.
    if (Date.now() - this.#restartedAt < UNTOLD) {
      cursor.away();
      cursor.back(true);
    }
    this.#cursors.set(queue.name, { queueId: queue.id, cursor });
    return cursor;
  }

  /** The cursor of that queue, if anybody here has touched it. */
  present(queue: string): QueueCursor | undefined {
    return this.#cursors.get(queue)?.cursor;
  }

  /** Every cursor, by its queue. */
  *all(): Iterable<readonly [queue: string, cursor: QueueCursor]> {
    for (const [queue, { cursor }] of this.#cursors) yield [queue, cursor];
  }

  /** The mirror saw a queue change: one that is deleted, or lives again as another, ends its cursor here. */
  queueChanged(name: string, queue: Queue | undefined): void {
    const present = this.#cursors.get(name);
    if (present === undefined) return;
    if (queue?.state === "ready" && queue.id === present.queueId) {
      present.cursor.suspect(queue.suspect ?? 0);
      return;
    }
    this.#cursors.delete(name);
    present.cursor.gone();
  }

  /** The mirror saw a binding of that queue change. */
  bindingChanged(queue: string): void {
    this.present(queue)?.bindingChanged();
  }

  away(): void {
    for (const { cursor } of this.#cursors.values()) cursor.away();
  }

  back(restarted: boolean): void {
    if (restarted) this.#restartedAt = Date.now();
    for (const { cursor } of this.#cursors.values()) cursor.back(restarted);
  }

  /** See `QueueCursor.lapsed`. */
  lapsed(): void {
    for (const { cursor } of this.#cursors.values()) cursor.lapsed();
  }

  /** See `QueueCursor.regained`. */
  regained(swept: boolean): void {
    for (const { cursor } of this.#cursors.values()) cursor.regained(swept);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#cursors.values()].map(({ cursor }) => cursor.close()));
    this.#cursors.clear();
  }
}
