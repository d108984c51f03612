/**
 * What this replica answers when another one asks.
 *
 * Responsibilities: the questions of fleet (barrier, counts), sweeper (pause, resume) and lead (changes), each given to
 * the part that knows. Used by: replica, as the answerer of the peers' port. Separate because it is the receiving end
 * of everything that replicas say to each other.
 */
import type { Topology } from "@amqp/topology";
import type { Consumption } from "./consumption.ts";
import type { Cursors } from "./cursors.ts";
import type { Holding } from "./fleet.ts";
import type { Lead } from "./lead.ts";
import type { QueueCursor } from "./queue.ts";

/** A pause whose leader never said `resume` ends by itself: longer than any sweep waits for a replica that lives. */
const LONGEST_PAUSE = 15_000;

export class Answers {
  readonly #topology: Topology;
  readonly #cursors: Cursors;
  readonly #consumption: Consumption;
  readonly #lead: Lead;
  /** Queue → the end of its pause. */
  readonly #paused: Map<string, { readonly cursor: QueueCursor; readonly timer: NodeJS.Timeout }> = new Map();

  constructor(topology: Topology, cursors: Cursors, consumption: Consumption, lead: Lead) {
    this.#topology = topology;
    this.#cursors = cursors;
    this.#consumption = consumption;
    this.#lead = lead;
  }

  async answer(question: string, details: unknown): Promise<unknown> {
    if (question.startsWith("lead.")) return this.#lead.answer(question.slice("lead.".length), details);
    const { revision = 0, queue = "" } = (details ?? {}) as { readonly revision?: number; readonly queue?: string };
    switch (question) {
      case "applied":
        return this.#topology.applied(revision);
      case "consuming":
        return this.#consumption.consuming();
      case "holding":
        return this.#holding(queue);
      case "pause":
        return this.#pause(queue);
      case "resume":
        return this.#resume(queue);
      default:
        throw new Error(`this version does not know the question ${question}`);
    }
  }

  async #holding(queue: string): Promise<Holding> {
    const cursor = this.#cursors.present(queue);
    return { consumers: cursor?.consumers ?? 0, held: (await cursor?.holding()) ?? [] };
  }

  /** Asked again while it lasts, it lasts on. */
  async #pause(queue: string): Promise<Holding> {
    this.#resume(queue);
    const cursor = this.#cursors.present(queue);
    if (cursor === undefined) return { consumers: 0, held: [], written: 0 };
    const timer = setTimeout(() => this.#resume(queue), LONGEST_PAUSE).unref();
    this.#paused.set(queue, { cursor, timer });
    const held = await cursor.pause();
    return { consumers: cursor.consumers, held, written: cursor.written };
  }

  #resume(queue: string): void {
    const paused = this.#paused.get(queue);
    if (paused === undefined) return;
    this.#paused.delete(queue);
    clearTimeout(paused.timer);
    paused.cursor.resume();
  }
}
