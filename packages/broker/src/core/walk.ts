/**
 * What the end of a cursor costs the bus.
 *
 * When a consumer of an interest stream is deleted, JetStream asks of each message from its floor to the log's end
 * whether any other consumer still wants it, and serves nobody else meanwhile (measured: 37,500 messages beside 100 consumers
 * took a second; above 50,000 sequences it leaves them for ever, design §5, LEAK). So what is far from the end, or beside
 * many, is emptied first, and is not counted by a throwaway consumer.
 *
 * Used by: count, drain, lifecycle. Separate because it is one fact about the bus, and pure.
 */
import type { LogState } from "./bus.ts";

/** Sequences between a cursor's ack floor and the log's end up to which the bus clears up by itself. */
export const DRAIN_ABOVE = 50_000;

/** Pairs of a message and a consumer that the bus may look at for a deletion (a seventh of a second, measured), or a count. */
const DELETION = 500_000;
const COUNT = 100_000;

/** Whether a cursor with that floor may be deleted as it is. */
export function mayDelete(log: LogState, floor: number): boolean {
  return log.lastSequence - floor <= DRAIN_ABOVE && pairs(log, floor) <= DELETION;
}

/** Whether a throwaway cursor may count what lies above. */
export function mayCount(log: LogState, above: number): boolean {
  return log.lastSequence - above <= DRAIN_ABOVE && pairs(log, above) <= COUNT;
}

function pairs({ lastSequence, messages, consumers }: LogState, above: number): number {
  return Math.min(messages, lastSequence - above) * consumers;
}
