/**
 * What the end of a cursor costs the bus.
 *
 * When a consumer of an interest stream is deleted, JetStream asks of each message from its floor to the log's end
 * whether any other consumer still wants it, and serves nobody else meanwhile (measured: 37,500 messages beside 100 consumers
 * took a second; above 50,000 sequences it leaves them for ever, design §5, LEAK). The floor of an empty queue is brought to
 * the log's end before it goes (floor.ts); that of one which holds messages cannot be, and a throwaway consumer that counts is
 * not made where its own end would cost much.
 *
 * Used by: count, drain, lifecycle, chores. Separate because it is one fact about the bus, and pure.
 */
import type { LogState } from "./bus.ts";

/** Sequences between a cursor's ack floor and the log's end up to which the bus clears up by itself. */
export const DRAIN_ABOVE = 50_000;

/** Pairs of a message and a consumer that the bus may look at: 30 ms, measured. */
const PAIRS = 100_000;

/** Whether a cursor with that floor may be deleted as it is. */
export function mayDelete(log: LogState, floor: number): boolean {
  return log.lastSequence - floor <= DRAIN_ABOVE;
}

/** Whether the end of a cursor with that floor holds nobody up. */
export function isCheap(log: LogState, floor: number): boolean {
  return Math.min(log.messages, log.lastSequence - floor) * log.consumers <= PAIRS;
}

/** Whether a throwaway cursor may count what lies above. */
export function mayCount(log: LogState, above: number): boolean {
  return mayDelete(log, above) && isCheap(log, above);
}
