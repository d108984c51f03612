// The laws of what happens to a message after it was delivered: settled is settled, a second delivery says so, order is
// kept, and in the end nothing is left. Used by check.ts. Separate from delivery.ts, which asks whether it came at all.
import type { Delivery, Fault, History } from "../history.ts";
import { byId } from "./delivery.ts";
import { isOfBus, LEASE } from "./lives.ts";
import type { Violation } from "./violation.ts";

/** The bus writes a consumer's state every tenth of a second: what it was told earlier than this before a kill, it knows. */
const FLUSHED = 1_000;
/** Two sockets are read in an order that says nothing about deliveries closer than this. */
const TOGETHER = 500;

/** What was settled, surely and in time, does not come again; what was sent to a consumer without acknowledgement is settled. */
export function settledIsSettled(history: History): Violation[] {
  const violations: Violation[] = [];
  for (const [, deliveries] of grouped(history)) {
    for (const settled of deliveries) {
      if (!isSurelySettled(settled, deliveries, history.faults)) continue;
      const again = deliveries.find((each) => each !== settled && each.at > (settled.syncedAt ?? Infinity));
      if (again === undefined) continue;
      violations.push({
        law: "settled is not delivered again",
        text: `${settled.id} was settled (${settled.settlement}) by ${settled.consumer} and came again from '${settled.queue}' ${Math.round(again.at - (settled.syncedAt ?? 0))} ms after that was certain`,
        message: settled.id,
        queue: settled.queue,
      });
    }
  }
  return violations;
}

/**
 * It was settled for good; the gateway answered a later question that waits for settlements; it held its lease all the
 * while; nobody else was given the message meanwhile; and the bus lived, and for a second more.
 */
function isSurelySettled(settled: Delivery, all: readonly Delivery[], faults: readonly Fault[]): boolean {
  const { settlement, settledAt, syncedAt, at, gateway } = settled;
  if (settlement === undefined || settlement === "requeue" || settledAt === undefined || syncedAt === undefined) {
    return false;
  }
  const isShaken = faults.some((fault) => {
    const { kind, target, from, until } = fault;
    if (isOfBus(fault)) return from <= syncedAt + FLUSHED && until + FLUSHED >= settledAt;
    if (kind === "lease-lapsed") return target === gateway && until >= at && from <= syncedAt + LEASE;
    return target === gateway && kind !== "gateway-restart" && from <= syncedAt && until >= at;
  });
  return !isShaken && !all.some((each) => each !== settled && each.at >= at && each.at <= syncedAt);
}

/** Only the first delivery of a message from a queue may say that it is one. */
export function secondIsFlagged(history: History): Violation[] {
  const violations: Violation[] = [];
  for (const [, deliveries] of grouped(history)) {
    const unflagged = deliveries.filter(({ redelivered }) => !redelivered);
    const late = unflagged.find((each) => deliveries.some((other) => other !== each && other.at < each.at - TOGETHER));
    const offender = unflagged.length > 1 ? unflagged.at(-1) : late;
    if (offender === undefined) continue;
    violations.push({
      law: "a second delivery is flagged",
      text: `${offender.id} came from '${offender.queue}' ${deliveries.length} times, ${unflagged.length} of them not flagged as redelivered`,
      message: offender.id,
      queue: offender.queue,
    });
  }
  return violations;
}

/** What one channel published comes to one consumer in that order, redeliveries aside. AMQP 4.7. */
export function orderIsKept(history: History): Violation[] {
  const published = byId(history.publishes);
  const latest = new Map<string, { readonly place: number; readonly delivery: Delivery }>();
  const violations: Violation[] = [];
  for (const delivery of history.deliveries) {
    const publish = published.get(delivery.id);
    if (publish === undefined || delivery.redelivered) continue;
    const stream = `${delivery.consumer} ${publish.channel}`;
    const before = latest.get(stream);
    if (before !== undefined && before.place > publish.place) {
      violations.push({
        law: "order of one publisher and one consumer",
        text: `${delivery.id} came from '${delivery.queue}' to ${delivery.consumer} after ${before.delivery.id}, which was published later, and is not flagged as redelivered`,
        message: delivery.id,
        queue: delivery.queue,
      });
    } else latest.set(stream, { place: publish.place, delivery });
  }
  return violations;
}

/** Everything drained and deleted: the bus keeps nothing. */
export function nothingIsLeft({ leftovers }: History): Violation[] {
  if (leftovers === undefined) return [];
  const { messages, consumers, keys, leases, live } = leftovers;
  const law = "nothing is left";
  const violations: Violation[] = [];
  if (messages > 0) violations.push({ law, text: `the stream holds ${messages} messages that nobody wants` });
  if (consumers.length > 0) violations.push({ law, text: `consumers of no queue: ${consumers.join(", ")}` });
  if (keys.length > 0) violations.push({ law, text: `keys of nothing: ${keys.join(", ")}` });
  if (leases !== live) violations.push({ law, text: `${leases} leases of ${live} live replicas` });
  return violations;
}

/** Deliveries of one message from one queue, in the order in which they came. */
export function grouped({ deliveries }: History): ReadonlyMap<string, readonly Delivery[]> {
  const groups = new Map<string, Delivery[]>();
  for (const delivery of deliveries) {
    const name = `${delivery.queue} ${delivery.id}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [delivery]);
    else group.push(delivery);
  }
  return groups;
}
