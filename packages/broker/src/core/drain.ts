/**
 * Emptying a cursor that is about to be deleted (design §5, LEAK).
 *
 * Responsibilities: a cursor deleted far behind the log's end leaves messages that nobody wants, for ever; so it is
 * emptied first, with headers only. Used by: the queue's deletion, before it deletes the cursor.
 * Separate because it needs no queue: the queue is `deleting`, and whoever leads may begin it again after a crash.
 */
import type { Permit } from "@amqp/topology";
import type { Bus, CursorState } from "./bus.ts";
import { NoWaitLine } from "./no-wait.ts";
import { mayDelete } from "./walk.ts";

const BATCH = 2_000;
const STRIDE = 5_000;
/** An ask that was lost is made good by the next round, and needs one more. */
const ROUNDS = 20;

/**
 * Acknowledges everything the cursor has: ready, put back or in clients' hands. Resolves to the sequence up to which
 * it did, for `bus.collect` after the cursor's deletion; undefined where nothing had to be done (then nothing has to
 * be collected either). `present` is its state as it was just read. Safe to begin again at any point: it goes by the cursor's
 * state alone. What `permit` throws ends it: the next leader may have made a queue of that name again.
 */
export async function emptyCursor(bus: Bus, present: CursorState, permit: Permit): Promise<number | undefined> {
  const { queue } = present;
  if (isEmpty(present)) return undefined;
  if (mayDelete(await bus.logState(), present.ackFloor)) return undefined;
  if (!(await bus.updateCursor(present, { headersOnly: true, permit }))) return undefined;
  let state: CursorState | undefined = present;
  const line = new NoWaitLine(bus, queue);
  try {
    for (let round = 0; ; round++) {
      if (round > ROUNDS) throw new Error(`queue '${queue}' could not be emptied: the bus loses what it is asked`);
      if (state.ackPending > 0) await acknowledgeDelivered(bus, state, permit);
      const end: boolean = await takeAll(bus, queue, line, permit);
      await bus.settled(queue);
      state = await bus.cursorState(queue);
      if (state === undefined) return undefined;
      if (state.ackPending === 0 && (end || state.pending === 0)) return state.delivered;
    }
  } finally {
    await line.close().catch(() => undefined);
  }
}

function isEmpty(state: CursorState): boolean {
  return state.pending === 0 && state.ackPending === 0;
}

/** Held or put back: nobody's token is needed. */
async function acknowledgeDelivered(bus: Bus, state: CursorState, permit: Permit): Promise<void> {
  const { queue } = state;
  let told = 0;
  for (let sequence = state.ackFloor + 1; sequence <= state.delivered; sequence++) {
    if (told % STRIDE === 0) permit();
    bus.ackAbandoned(queue, sequence, state.deliveredSequence);
    if (++told % STRIDE === 0) await bus.settled(queue);
  }
  await bus.settled(queue);
}

/** False: it may not have been the end. */
async function takeAll(bus: Bus, queue: string, line: NoWaitLine, permit: Permit): Promise<boolean> {
  for (;;) {
    permit();
    const { messages, why } = await line.ask(BATCH);
    permit();
    for (const message of messages) bus.settle(message.token, "ack");
    if (why === "empty" || why === "gone") return true;
    if (why === "lost" && !bus.present) throw new Error(`the bus went away while queue '${queue}' was emptied`);
    if (why !== undefined) return false;
  }
}
