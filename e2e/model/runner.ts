// Runs a history on a broker and on the model at once, from nothing to nothing, and says at which step they differ.
// Used by bindings.test.ts. Separate from pair.ts because this knows no wire.
import type { Operation } from "./operations.ts";
import { Pair, type Place } from "./pair.ts";

/** Every so many steps all queues are counted, not only those that the step named. */
const AUDIT = 20;

/** The step at which broker and model differ. */
export class Difference extends Error {
  readonly step: number;
  /** Of the operations up to that step those that were not skipped: they fail alike. */
  readonly done: readonly Operation[];

  constructor(step: number, message: string, done: readonly Operation[]) {
    super(message);
    this.step = step;
    this.done = done;
  }
}

let runs = 0;

/** Runs the history under names of its own and takes everything away again. @throws Difference */
export async function run(place: Place, operations: readonly Operation[]): Promise<void> {
  const pair = await Pair.start(place, `model-${process.pid}-${runs++}-`);
  const done: Operation[] = [];
  let step = 0;
  try {
    for (const operation of operations) {
      if (pair.isPossible(operation)) {
        done.push(operation);
        await pair.do(operation);
        if (step % AUDIT === 0) await pair.audit();
      }
      step++;
    }
    await pair.empty();
  } catch (error) {
    throw new Difference(step, error instanceof Error ? error.message : String(error), done);
  } finally {
    await pair.end();
  }
}
