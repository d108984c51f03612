// What a consumer's life says of messages that are not seen: how long one may be in its hands or on the way back from it,
// and until when one may be lost with it. Used by the laws of purges, of what is handed back and of what is confirmed.
// Separate because each is a bound that every one of them leans on.
import type { Delivery, Fault, History, Life, Publish } from "../history.ts";

/** How long a gateway that is not disturbed takes to notice and put back, milliseconds. */
export const NOTICED = 1_000;
/** What was in nobody's hands is ready again within this, whatever happens to gateways and bus meanwhile. */
export const HEALED = 30_000;
/** A lease that is said to have lapsed lapsed some time before. */
export const LEASE = 6_000;
/** A fault so long before a life's end may still be at work on what that life held. */
const BEFORE = 10_000;

/** Whether it is one of the bus. */
export function isOfBus({ kind }: Fault): boolean {
  return kind === "bus-kill" || kind === "server-kill";
}

/** When nothing is in this consumer's hands any more, nor on its way to it or back. */
export function goneBy({ ended, inOrder, gateway }: Life, faults: readonly Fault[]): number {
  if (ended === undefined) return Number.POSITIVE_INFINITY;
  const isShaken = faults.some(
    (fault) =>
      (fault.target === gateway || isOfBus(fault)) && fault.from <= ended + NOTICED && fault.until >= ended - BEFORE,
  );
  return ended + (inOrder && !isShaken ? NOTICED : HEALED);
}

/**
 * Until when what is given to a consumer without acknowledgement may be lost with it: until its gateway has noticed that
 * nobody is there. Undefined: all that it was sent was read.
 */
export function losesUntil({ noAck, ended, inOrder, gateway }: Life, faults: readonly Fault[]): number | undefined {
  if (!noAck || inOrder) return undefined;
  if (ended === undefined) return Number.POSITIVE_INFINITY;
  const stopped = faults.filter(
    ({ kind, target, from, until }) =>
      kind === "gateway-stop" && target === gateway && from <= ended + NOTICED && until >= ended,
  );
  return Math.max(ended, ...stopped.map(({ until }) => until)) + NOTICED;
}

/** When this delivery may be in its client's hands no more, so that the message may be ready. */
export function heldUntil(delivery: Delivery, life: Life | undefined, faults: readonly Fault[]): number {
  const { at, settledAt, gateway } = delivery;
  const shaken = faults
    .filter((fault) => (fault.target === gateway || isOfBus(fault)) && fault.until >= at)
    .map(({ kind, from }) => Math.max(at, kind === "lease-lapsed" ? from - LEASE : from));
  return Math.min(settledAt ?? life?.leaving ?? Number.POSITIVE_INFINITY, ...shaken);
}

/** Which messages may be lost because they were sent to somebody who acknowledges nothing and is no more. */
export class Losses {
  readonly #history: History;
  readonly #published: ReadonlyMap<string, Publish>;
  readonly #lossy: ReadonlyMap<string, readonly { readonly life: Life; readonly until: number }[]>;
  /** Queue → its first deliveries, as when they came and when they were published. */
  readonly #firsts: Map<string, { readonly at: number; readonly sent: number; readonly consumer: string }[]> =
    new Map();

  constructor(history: History, published: ReadonlyMap<string, Publish>) {
    this.#history = history;
    this.#published = published;
    const lossy = new Map<string, { readonly life: Life; readonly until: number }[]>();
    for (const life of history.lives) {
      const until = losesUntil(life, history.faults);
      if (until !== undefined) lossy.set(life.queue, [...(lossy.get(life.queue) ?? []), { life, until }]);
    }
    this.#lossy = lossy;
  }

  /**
   * Whether a confirmed message that never came may have gone so. Not with a consumer that was given younger messages for
   * so long that it would have been given this one: the bus gives what was put back first.
   */
  mayExplain(queue: string, { sent, answered }: Publish): boolean {
    const lossy = (this.#lossy.get(queue) ?? []).filter(({ until }) => sent <= until);
    if (lossy.length === 0) return false;
    const younger = this.#firstsOf(queue).filter((each) => answered !== undefined && each.sent > answered);
    const passed = Math.min(Number.POSITIVE_INFINITY, ...younger.map(({ at }) => at)) + HEALED;
    return lossy.some(({ life }) => !younger.some(({ at, consumer }) => consumer === life.consumer && at >= passed));
  }

  #firstsOf(queue: string): readonly { readonly at: number; readonly sent: number; readonly consumer: string }[] {
    let firsts = this.#firsts.get(queue);
    if (firsts === undefined) {
      firsts = [];
      for (const { id, at, redelivered, consumer, queue: from } of this.#history.deliveries) {
        const publish = from === queue && !redelivered ? this.#published.get(id) : undefined;
        if (publish !== undefined) firsts.push({ at, sent: publish.sent, consumer });
      }
      this.#firsts.set(queue, firsts);
    }
    return firsts;
  }

  /** Whether a message that may have been ready since then may have gone so. */
  mayExplainSince(queue: string, since: number): boolean {
    return (this.#lossy.get(queue) ?? []).some(({ until }) => since <= until);
  }
}
