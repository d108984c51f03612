// The laws of exclusive queues: nobody but the owner's connection uses one while that lives, on any replica; and it goes
// with it: within a second of the socket's end where nothing else happens, within 15 s where a gateway died, later only
// by what the bus was away. A replica that lost its lease (killed, stopped, or the bus away) may lose what its
// connections own; even then nobody else may use it, but declare it anew. Used by check.ts. Separate because these
// laws are about who asks.
import type { Fault, History, Operation, Ownership } from "../history.ts";
import { isOfBus, LEASE } from "./lives.ts";
import type { Violation } from "./violation.ts";

/** After the end of a socket in quiet times, milliseconds. */
const AT_ONCE = 1_000;
/** After a gateway's death, or any other trouble. */
const IN_TROUBLE = 15_000;
/** For so long after a fault's end its consequences go on: leaders change, sweeps run. */
const AFTERMATH = 15_000;

/** Since when the owner may have lost it although its connection lives. */
function shakenSince({ gateway, sent }: Ownership, faults: readonly Fault[]): number {
  const shaken = faults.filter(({ target, until }) => target === gateway && until >= sent);
  const since = shaken.map(({ kind, from }) => Math.max(sent, kind === "lease-lapsed" ? from - LEASE : from));
  return Math.min(Number.POSITIVE_INFINITY, ...since);
}

/** How long it was certainly its owner's. */
function certainUntil(ownership: Ownership, faults: readonly Fault[]): number {
  return Math.min(ownership.until ?? Number.POSITIVE_INFINITY, shakenSince(ownership, faults));
}

/** From when on it must be gone. */
function goneFrom({ ended }: Ownership, faults: readonly Fault[]): number {
  if (ended === undefined) return Number.POSITIVE_INFINITY;
  const isCalm = !faults.some(({ from, until }) => from <= ended + AT_ONCE && until + AFTERMATH >= ended);
  if (isCalm) return ended + AT_ONCE;
  let end = ended + IN_TROUBLE;
  // The time counts from when the bus is there.
  for (const fault of [...faults].sort((a, b) => a.from - b.from)) {
    if (isOfBus(fault) && fault.from <= end && fault.until >= ended) end = Math.max(end, fault.until + IN_TROUBLE);
  }
  return end;
}

/** For the reference model: a queue that went with its owner is as good as deleted, at some moment between these two. */
export function ownersGone({ ownerships, faults }: History): Operation[] {
  return ownerships.map((ownership) => {
    const { queue, gateway, until, sent: declared, gone } = ownership;
    const sent = until === undefined && gone === undefined ? declared : certainUntil(ownership, faults);
    const about = { kind: "delete" as const, queue, exchange: "", key: "", gateway, sent };
    return gone === undefined ? { ...about, outcome: "unknown" } : { ...about, answered: gone, outcome: "ok" };
  });
}

export function exclusiveIsExclusive(history: History): Violation[] {
  const { operations, ownerships, faults } = history;
  const byQueue = new Map<string, Ownership[]>();
  for (const each of ownerships) byQueue.set(each.queue, [...(byQueue.get(each.queue) ?? []), each]);
  const bounds = new Map(
    ownerships.map((each) => [each, { until: certainUntil(each, faults), gone: goneFrom(each, faults) }]),
  );
  const violations: Violation[] = [];
  for (const operation of operations) {
    const { asker, queue, answered, outcome, sent, gateway } = operation;
    if (asker === undefined || answered === undefined || outcome === "unknown") continue;
    const owned = byQueue.get(queue) ?? [];
    const owner = owned.find(
      (each) => each.answered !== undefined && each.answered <= sent && answered <= (bounds.get(each)?.until ?? 0),
    );
    const said = outcome === "ok" ? "granted" : `refused with ${operation.code}`;
    const about = `${operation.kind} of '${queue}' by ${asker} at gateway ${gateway} was ${said}`;
    if (owner !== undefined && owner.owner !== asker && operation.code !== 405) {
      const text = `${about} while it was ${owner.owner}'s at gateway ${owner.gateway}`;
      violations.push({ law: "an exclusive queue is its owner's", text, queue, at: sent });
    } else if (owner?.owner === asker && outcome === "refused") {
      violations.push({ law: "an exclusive queue serves its owner", text: about, queue, at: sent });
    } else if (outcome === "ok" && !mayBeGranted(operation, owned)) {
      violations.push({
        law: "an exclusive queue is its owner's",
        text: `${about}, who never declared it`,
        queue,
        at: sent,
      });
    } else if (operation.code === 405 && !owned.some((each) => mayLock(each, operation))) {
      const text = `${about} when nobody's connection could have had it any more`;
      violations.push({ law: "an exclusive queue goes with its owner", text, queue, at: sent });
    }
  }
  return violations;

  function mayLock(each: Ownership, { asker, sent, answered = sent }: Operation): boolean {
    return each.owner !== asker && each.sent <= answered && sent <= (bounds.get(each)?.gone ?? 0);
  }
}

/** Declaring makes an owner; a deletion of what is not there is granted. */
function mayBeGranted({ kind, asker }: Operation, owned: readonly Ownership[]): boolean {
  return kind === "declare" || kind === "delete" || owned.some(({ owner }) => owner === asker);
}
