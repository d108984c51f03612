/**
 * Lanes: tasks on one name run one after another, in the order in which they were given.
 *
 * Responsibilities: order per queue (and per exchange) for everything that changes it: one update in flight (design §4,
 * ONE WRITER), and joining neighbours that can be done in one step (binds).
 * Used by: exchanges, queues, bindings, chores. Separate because the order of changes is a law of its own.
 */
import { setTimeout as sleep } from "node:timers/promises";

/** How long a lane rests after a step that several joined, as a part of what it took; milliseconds at most. */
const GATHERING = 0.25;
const LONGEST_GATHERING = 50;

interface Step {
  run(): Promise<void>;
  /** Set on a step that takes its neighbours in. */
  readonly joiner?: unknown;
  readonly items?: unknown[];
}

/** A step's item and whoever waits for its answer. */
interface Waiting<Item, T> {
  readonly item: Item;
  resolve(value: T): void;
  reject(error: unknown): void;
}

export class Lanes {
  readonly #lanes: Map<string, Step[]> = new Map<string, Step[]>();

  /** Runs `task` after all that was given for `name` before; resolves or rejects as it does. */
  run<T>(name: string, task: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#push(name, { run: () => task().then(resolve, reject) });
    });
  }

  /**
   * Gives `item` to `joiner` after all that was given for `name` before. Items that wait beside each other for the same
   * joiner reach it in one call; it answers each by its place.
   */
  join<Item, T>(name: string, item: Item, joiner: (items: readonly Item[]) => Promise<readonly T[]>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiting: Waiting<Item, T> = { item, resolve, reject };
      const last = this.#lanes.get(name)?.at(-1);
      if (last?.joiner === joiner && last.items !== undefined) {
        last.items.push(waiting);
        return;
      }
      const items: Waiting<Item, T>[] = [waiting];
      this.#push(name, { joiner, items, run: () => runJoined(items, joiner) });
    });
  }

  /** Resolves when everything given so far for every name has run. */
  async idle(): Promise<void> {
    await Promise.all([...this.#lanes.keys()].map((name) => this.run(name, async () => {})));
  }

  #push(name: string, step: Step): void {
    const steps = this.#lanes.get(name);
    if (steps !== undefined) {
      steps.push(step);
      return;
    }
    const lane = [step];
    this.#lanes.set(name, lane);
    // Not in this very turn: what is given together is there when the first step is taken.
    queueMicrotask(() => void this.#run(name, lane));
  }

  async #run(name: string, steps: Step[]): Promise<void> {
    for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
      const began = performance.now();
      await step.run();
      // Several who were answered together come again together, in a moment: they shall share the next step too.
      if (step.items !== undefined && step.items.length > 1)
        await sleep(Math.min((performance.now() - began) * GATHERING, LONGEST_GATHERING));
    }
    this.#lanes.delete(name);
  }
}

async function runJoined<Item, T>(
  waiting: readonly Waiting<Item, T>[],
  joiner: (items: readonly Item[]) => Promise<readonly T[]>,
): Promise<void> {
  try {
    const answers = await joiner(waiting.map((one) => one.item));
    waiting.forEach((one, at) => {
      one.resolve(answers[at] as T);
    });
  } catch (error) {
    for (const one of waiting) one.reject(error);
  }
}
