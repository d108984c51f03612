// The laws of queue.purge: it takes what is ready and was confirmed before it began; it spares what clients hold, what is
// published after it, and says how many it took. What was published meanwhile may go either way. Used by check.ts and,
// to know what a purge explains, by the laws of delivery. Separate because a purge is the one command that makes
// confirmed messages vanish.
import type { History, Operation, Publish } from "../history.ts";
import type { Missing } from "./delivery.ts";
import { goneBy, HEALED, isOfBus, NOTICED } from "./lives.ts";
import { LATE } from "./spans.ts";
import type { Violation } from "./violation.ts";

/** The bus writes what it was told every tenth of a second. */
const FLUSHED = 1_000;

/** Somebody who may have a message between these two: a consumer, or another purge. */
interface Hand {
  readonly from: number;
  readonly gone: number;
}

export class Purges {
  readonly #history: History;
  readonly #of: Map<string, readonly Operation[]> = new Map<string, readonly Operation[]>();
  readonly #hands: Map<string, readonly (Hand & { readonly purge?: Operation })[]> = new Map();

  constructor(history: History) {
    this.#history = history;
  }

  /** In the order in which they were asked for; a refused one took nothing. */
  of(queue: string): readonly Operation[] {
    let purges = this.#of.get(queue);
    if (purges === undefined) {
      purges = this.#history.operations.filter(
        (each) => each.kind === "purge" && each.queue === queue && each.outcome !== "refused",
      );
      this.#of.set(queue, purges);
    }
    return purges;
  }

  /** Those that may have taken a message that was published then, up to the first that certainly did if nobody had it. */
  mayHaveTaken(queue: string, publish: Publish): readonly Operation[] {
    const takers: Operation[] = [];
    for (const purge of this.of(queue)) {
      if (endOf(purge) < publish.sent) continue;
      takers.push(purge);
      // Another one may overlap it, but not begin after its answer.
      if (this.mustTake(purge, publish)) {
        const end = endOf(purge);
        return this.of(queue).filter((each) => endOf(each) >= publish.sent && each.sent <= end);
      }
    }
    return takers;
  }

  /** Whether one that ended after this may have taken what was ready then. */
  mayHaveTakenSince(queue: string, since: number): boolean {
    return this.of(queue).some((purge) => endOf(purge) >= since);
  }

  /**
   * Confirmed before the purge was asked for, and certainly ready: in no hands, not on the way to any or back. Where the
   * message may ever have been in somebody's, the bus must have been there for long; and for a moment after the answer
   * always, since a crash takes what it was told last.
   */
  mustTake(purge: Operation, { sent, answered, outcome }: Publish): boolean {
    if (purge.outcome !== "ok" || purge.answered === undefined) return false;
    if (outcome !== "acked" || answered === undefined || answered >= purge.sent) return false;
    const end = purge.answered;
    let isTouched = false;
    for (const hand of this.#handsOn(purge.queue)) {
      if (hand.purge === purge || hand.from > end) continue;
      if (hand.gone >= purge.sent) return false;
      if (hand.gone >= sent) isTouched = true;
    }
    const calmFrom = purge.sent - (isTouched ? HEALED : 0);
    return !this.#history.faults.some(
      (fault) => isOfBus(fault) && fault.from <= end + FLUSHED && fault.until >= calmFrom,
    );
  }

  #handsOn(queue: string): readonly (Hand & { readonly purge?: Operation })[] {
    let hands = this.#hands.get(queue);
    if (hands === undefined) {
      const { lives, faults } = this.#history;
      hands = [
        ...lives
          .filter((life) => life.queue === queue)
          .map((life) => ({ from: life.from, gone: goneBy(life, faults) })),
        ...this.of(queue).map((purge) => ({ from: purge.sent, gone: endOf(purge) + NOTICED, purge })),
      ];
      this.#hands.set(queue, hands);
    }
    return hands;
  }
}

/** What was purged does not come any more. */
export function purgedIsGone(history: History, purges: Purges, published: ReadonlyMap<string, Publish>): Violation[] {
  const violations: Violation[] = [];
  for (const delivery of history.deliveries) {
    const { queue, id, at } = delivery;
    const publish = published.get(id);
    if (publish === undefined) continue;
    const purge = purges
      .of(queue)
      .find((each) => (each.answered ?? Infinity) < at && each.sent > publish.sent && purges.mustTake(each, publish));
    if (purge === undefined) continue;
    violations.push({
      law: "purged does not come",
      text: `${id} was confirmed and ready before '${queue}' was purged at gateway ${purge.gateway}, and came ${Math.round(at - (purge.answered ?? at))} ms after purge-ok`,
      message: id,
      queue,
    });
  }
  return violations;
}

/** What is missing and only one purge can have taken is among what that one said it took. */
export function purgeCountsWhatItTook(purges: Purges, missing: readonly Missing[]): Violation[] {
  const taken = new Map<Operation, Missing[]>();
  for (const each of missing) {
    const takers = purges.mayHaveTaken(each.queue, each.publish);
    const [only] = takers;
    if (only === undefined || takers.length > 1) continue;
    const of = taken.get(only) ?? [];
    taken.set(only, of);
    of.push(each);
  }
  const violations: Violation[] = [];
  for (const [{ queue, gateway, messages, outcome }, of] of taken) {
    if (outcome !== "ok" || messages === undefined || of.length <= messages) continue;
    violations.push({
      law: "a purge says what it took",
      text: `a purge of '${queue}' at gateway ${gateway} said ${messages}, and ${of.length} are missing that no other can have taken`,
      queue,
      ...(of[0] === undefined ? {} : { message: of[0].publish.id }),
    });
  }
  return violations;
}

/** One whose answer is not known may still be at work. */
function endOf({ sent, answered }: Operation): number {
  return answered ?? sent + LATE;
}
