/**
 * Bringing the floor of an empty cursor to the log's end, before the cursor is deleted (see walk.ts).
 *
 * Responsibilities: a message of our own for the queue that goes, taken at once: JetStream then has nothing to look
 * through (measured beside 37,500 messages and 100 consumers: 12 ms instead of 312 in which the bus serves nobody). Used by:
 * lifecycle. Separate because it is a way around one cost of the bus, and goes when the bus has it no more.
 */
import type { Permit } from "@amqp/topology";
import type { Bus, Incoming, PublishOutcome } from "./bus.ts";
import { NoWaitLine } from "./no-wait.ts";

const BATCH = 100;
/** Messages of others that may come in between, in batches, before it is left as it is. */
const ROUNDS = 10;

/**
 * `subject`: one that this cursor has. Resolves to what became of the message; where it was not stored, nothing is done.
 * The queue is `deleting`: whatever is in it is nobody's.
 */
export async function raiseFloor(bus: Bus, queue: string, subject: string, permit: Permit): Promise<PublishOutcome> {
  const outcome = await bus.store(subject, permit);
  if (outcome !== "stored") return outcome;
  const line = new NoWaitLine(bus, queue);
  try {
    let taken = 0;
    for (let round = 0; round < ROUNDS; round++) {
      permit();
      const { messages, why } = await line.ask(BATCH);
      settle(bus, messages, permit);
      taken += messages.length;
      // A no-wait ask may lag the PubAck by milliseconds.
      if (why === "gone" || why === "lost" || (taken > 0 && why !== undefined)) break;
    }
    await bus.settled(queue);
  } finally {
    await line.close().catch(() => undefined);
  }
  return outcome;
}

/** Who may not any more gives them back: they may be the next queue's of that name. */
function settle(bus: Bus, messages: readonly Incoming[], permit: Permit): void {
  try {
    permit();
  } catch (error) {
    for (const { token } of messages) bus.settle(token, "nak");
    throw error;
  }
  for (const { token } of messages) bus.settle(token, "ack");
}
