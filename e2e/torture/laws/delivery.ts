// The laws of where a message goes: confirmed is delivered, to the queues that were bound and to no other, and what comes
// is what was published. Used by check.ts. Separate from settlement.ts, which asks what happens afterwards.
import type { Delivery, History, Publish } from "../history.ts";
import type { Losses } from "./lives.ts";
import type { Purges } from "./purge.ts";
import { LATE, type Spans } from "./spans.ts";
import type { Violation } from "./violation.ts";

/** A confirmed message that never came from a queue that certainly was bound. */
export interface Missing {
  readonly queue: string;
  readonly publish: Publish;
}

/** Of the queues that were drained, and were not deleted since the publish. */
export function allMissing(history: History, spans: Spans): Missing[] {
  const arrived = new Set(history.deliveries.map(({ queue, id }) => `${queue} ${id}`));
  const missing: Missing[] = [];
  for (const queue of history.drained.keys()) {
    const since = lastDeletion(history, queue);
    for (const publish of history.publishes) {
      const { id, exchange, routingKey, sent, answered, outcome, returned } = publish;
      if (outcome !== "acked" || answered === undefined || sent <= since || returned !== undefined) continue;
      if (!spans.certainly(queue, exchange, routingKey, sent, answered) || arrived.has(`${queue} ${id}`)) continue;
      missing.push({ queue, publish });
    }
  }
  return missing;
}

/** When the queue may last have been deleted before it was drained. */
export function lastDeletion({ operations, drained }: History, queue: string): number {
  const end = drained.get(queue) ?? Number.POSITIVE_INFINITY;
  const deletions = operations.filter(
    (each) => each.kind === "delete" && each.queue === queue && each.outcome !== "refused" && each.sent < end,
  );
  return Math.max(0, ...deletions.map(({ answered, sent }) => answered ?? sent + LATE));
}

/** A queue gets what was confirmed while it was bound, unless a purge or a lost consumer without acknowledgement took it. */
export function everyConfirmedArrives(missing: readonly Missing[], purges: Purges, losses: Losses): Violation[] {
  return missing
    .filter(({ queue, publish }) => purges.mayHaveTaken(queue, publish).length === 0)
    .filter(({ queue, publish }) => !losses.mayExplain(queue, publish))
    .map(({ queue, publish: { id } }) => ({
      law: "confirmed is delivered",
      text: `${id} was confirmed while '${queue}' was certainly bound, and never came`,
      message: id,
      queue,
    }));
}

/** A queue never gets what it was not bound for. */
export function nothingStrays(history: History, spans: Spans): Violation[] {
  const published = byId(history.publishes);
  const violations: Violation[] = [];
  for (const delivery of history.deliveries) {
    const { id, queue } = delivery;
    const publish = published.get(id);
    if (publish === undefined || !isSame(publish, delivery)) {
      violations.push({
        law: "delivered as published",
        text: `${id} came from '${queue}' and was not published so`,
        message: id,
        queue,
      });
      continue;
    }
    const until = storedBy(publish, delivery);
    if (!spans.possibly(queue, publish.exchange, publish.routingKey, publish.sent, until)) {
      violations.push({
        law: "never in a queue that was not bound",
        text: `${id} came from '${queue}', which was certainly not bound when it was published`,
        message: id,
        queue,
      });
    }
  }
  return violations;
}

/** A deleted queue's messages go with it: one declared again begins empty. */
export function lifeIsNotRevived(history: History): Violation[] {
  const published = byId(history.publishes);
  const violations: Violation[] = [];
  for (const { kind, outcome, queue, sent, answered } of history.operations) {
    if (kind !== "delete" || outcome !== "ok" || answered === undefined) continue;
    for (const delivery of history.deliveries) {
      if (delivery.queue !== queue || delivery.consumerSent < answered) continue;
      const publish = published.get(delivery.id);
      if (publish?.answered === undefined || publish.outcome !== "acked" || publish.answered > sent) continue;
      violations.push({
        law: "a deleted queue is empty when it is declared again",
        text: `${delivery.id} was confirmed before '${queue}' was deleted and came to a consumer that began afterwards`,
        message: delivery.id,
        queue,
      });
    }
  }
  return violations;
}

/** basic.return says that nothing is bound, and that the message is nowhere. */
export function returnsAreTrue(history: History, spans: Spans): Violation[] {
  const arrived = new Map(history.deliveries.map(({ id, queue }) => [id, queue]));
  const violations: Violation[] = [];
  for (const { id, exchange, routingKey, mandatory, sent, answered, outcome, returned } of history.publishes) {
    if (!mandatory || answered === undefined) continue;
    if (returned !== undefined) {
      for (const queue of spans.queues) {
        if (!spans.certainly(queue, exchange, routingKey, sent, answered)) continue;
        violations.push({
          law: "returned is unroutable",
          text: `${id} was returned while '${queue}' was certainly bound`,
          message: id,
          queue,
        });
        break;
      }
      const queue = arrived.get(id);
      if (queue !== undefined)
        violations.push({
          law: "returned is not stored",
          text: `${id} was returned and came from '${queue}'`,
          message: id,
          queue,
        });
    } else if (outcome === "acked") {
      const isRoutable = [...spans.queues].some((queue) => spans.possibly(queue, exchange, routingKey, sent, answered));
      if (!isRoutable)
        violations.push({
          law: "unroutable is returned",
          text: `${id} is mandatory, nothing was bound, and it did not come back`,
          message: id,
        });
    }
  }
  return violations;
}

/** Never a false 404: what certainly stood all the time is found. */
export function whatStandsIsFound(history: History, spans: Spans): Violation[] {
  const violations: Violation[] = [];
  for (const { kind, queue, exchange, sent, answered, code, text, gateway } of history.operations) {
    if (code !== 404 || answered === undefined) continue;
    const isQueueThere = queue === "" || spans.queueStood(queue, sent, answered);
    const isExchangeThere = exchange === "" || spans.exchangeStood(exchange, sent, answered);
    if (!isQueueThere || !isExchangeThere) continue;
    violations.push({
      law: "what stands is found",
      text: `${kind} of '${queue}' '${exchange}' at gateway ${gateway}: ${text} although it certainly stood`,
      queue,
    });
  }
  return violations;
}

/** The latest moment at which it may have been stored. */
export function storedBy(publish: Publish, delivery: Delivery): number {
  return publish.outcome === "acked" && publish.answered !== undefined
    ? Math.min(publish.answered, delivery.at)
    : delivery.at;
}

export function byId(publishes: readonly Publish[]): ReadonlyMap<string, Publish> {
  return new Map(publishes.map((publish) => [publish.id, publish]));
}

function isSame(publish: Publish, delivery: Delivery): boolean {
  return publish.exchange === delivery.exchange && publish.routingKey === delivery.routingKey;
}
