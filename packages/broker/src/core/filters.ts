/**
 * The filters of the cursors as this process last wrote them.
 *
 * Responsibilities: bringing a queue's cursor to a set of filters, with one update and only where it differs, and
 * knowing after a silent bus what became of it. Used by: bindings, chores, reconcile.
 * Separate because JetStream has no compare-and-set for consumers: whoever changes one must know that it is alone and
 * that its last change is settled (design §4, ONE WRITER). Runs inside the queue's lane only.
 */
import type { Queue } from "@amqp/topology";
import type { Bus } from "./bus.ts";
import type { Leadership } from "./leadership.ts";

export class CursorFilters {
  readonly #bus: Bus;
  readonly #leadership: Leadership;
  readonly #written: Map<string, string> = new Map<string, string>();

  constructor(bus: Bus, leadership: Leadership) {
    this.#bus = bus;
    this.#leadership = leadership;
  }

  /** What the bus was found to have, at boot. */
  found(queue: string, queueId: number, filters: readonly string[]): void {
    this.#written.set(queue, spell(queueId, filters));
  }

  forget(queue: string): void {
    this.#written.delete(queue);
  }

  /** Whether the cursor is known to have exactly these. */
  are(queue: Queue, filters: readonly string[]): boolean {
    return this.#written.get(queue.name) === spell(queue.id, filters);
  }

  /** Another replica may have led since: what was written last is not known. */
  forgetAll(): void {
    this.#written.clear();
  }

  /**
   * Makes the cursor's filters exactly these (an antichain). `false`: there is no such cursor (any more).
   * Narrowing destroys what no remaining filter matches: the caller has seen that nothing of it is wanted.
   */
  async write(queue: Queue, filters: readonly string[], revision: number): Promise<boolean> {
    const wanted = spell(queue.id, filters);
    if (this.#written.get(queue.name) === wanted) return true;
    this.#written.delete(queue.name);
    const { permit } = this.#leadership;
    const update = (): Promise<boolean> =>
      this.#bus.updateCursor({ queue: queue.name, filters, revision, queueId: queue.id }, { permit });
    let updated: boolean;
    try {
      updated = await update();
    } catch (error) {
      if (!isTimeout(error)) throw error;
      // A silent bus: the outcome is unknown, so read before going on.
      const state = await this.#bus.cursorState(queue.name);
      if (state === undefined) return false;
      updated = spell(state.queueId, state.filters) === wanted || (await update());
    }
    if (updated) this.#written.set(queue.name, wanted);
    return updated;
  }
}

function spell(queueId: number, filters: readonly string[]): string {
  return `${queueId} ${[...filters].sort().join(" ")}`;
}

/** Whether the bus said nothing in time: the outcome of what was asked is unknown. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error as { timeout?: unknown }).timeout === true;
}
