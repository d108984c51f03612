// The law of what a client had and did not settle for good: requeued, or held when its channel, its connection or its
// gateway ended, it comes again; a purge meanwhile spares it. Used by check.ts. Separate from settlement.ts, whose
// messages are done with.
import type { History } from "../history.ts";
import { lastDeletion } from "./delivery.ts";
import { heldUntil, type Losses } from "./lives.ts";
import type { Purges } from "./purge.ts";
import { grouped } from "./settlement.ts";
import type { Violation } from "./violation.ts";

/** Two sockets are read in an order that says nothing about deliveries closer than this. */
const TOGETHER = 500;

/**
 * Judged where the queue was drained, and not deleted since; a message that anybody settled for good may be gone. What was
 * delivered is in the queue, also where its binding was being undone when it was stored.
 */
export function handedBackComesAgain(history: History, purges: Purges, losses: Losses): Violation[] {
  const { drained, lives, faults } = history;
  const lifeOf = new Map(lives.map((life) => [life.consumer, life]));
  const deleted = new Map([...drained.keys()].map((queue) => [queue, lastDeletion(history, queue)]));
  const violations: Violation[] = [];
  for (const deliveries of grouped(history).values()) {
    const last = deliveries.at(-1);
    if (last === undefined || !drained.has(last.queue) || (deleted.get(last.queue) ?? 0) >= last.at) continue;
    if (deliveries.some(({ settlement }) => settlement !== undefined && settlement !== "requeue")) continue;
    // Whose hands it was in last is not certain where two had it at about the same time: the earlier end counts.
    const latest = deliveries.filter(({ at }) => at >= last.at - TOGETHER);
    const ready = Math.min(...latest.map((each) => heldUntil(each, lifeOf.get(each.consumer), faults)));
    if (purges.mayHaveTakenSince(last.queue, ready) || losses.mayExplainSince(last.queue, ready)) continue;
    violations.push({
      law: "handed back comes again",
      text: `${last.id} of '${last.queue}' was ${last.settlement === "requeue" ? "requeued" : "held to the end"} by ${last.consumer} and never came again`,
      message: last.id,
      queue: last.queue,
    });
  }
  return violations;
}
