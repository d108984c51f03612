/**
 * Emptying a queue of what is ready, sparing what clients hold.
 *
 * Responsibilities: pulls and acknowledges up to the log's end as it was at the start, until the bus says that
 * nothing is left (design §6: a reset is refused for such a cursor, and a new one would forget the unacked).
 * Used by: queue, in its turn. Separate because it pulls on a line of its own.
 */
import { BusAway, type Incoming } from "./bus.ts";
import { type Desk, isExpired } from "./desk.ts";
import { Lag } from "./lag.ts";
import { anyAbove } from "./log-look.ts";
import { NoWaitLine } from "./no-wait.ts";
import { TRIES, untilServing } from "./patience.ts";
import type { Turns } from "./turns.ts";

const BATCH = 1_000;
/** How often it is looked again where other pulls may have what is there. */
const LOOKS = 10;

/** How far a purge came: `lost` means that a sweep must put back what was on its way. */
interface Purged {
  /** How many messages were in the queue and are gone; those that had expired do not count. */
  readonly messages: number;
  readonly lost: boolean;
}

/** Resolves to how many messages were ready when it began, and are gone; throws {@link BusAway}. */
export async function purge(desk: Desk, turns: Turns, isGone: () => boolean): Promise<number> {
  let messages = 0;
  let last: number | undefined;
  for (let tries = 0; ; tries++) {
    await untilServing(desk);
    if (tries > 0) await desk.options.sweep(desk.name);
    const purged = await turns.run(async () => {
      if (isGone()) return { messages: 0, lost: false };
      last ??= await purgeEnd(desk);
      return purgeOnce(desk, last);
    });
    messages += purged.messages;
    if (!purged.lost) return messages;
    if (tries === TRIES) throw new BusAway(`queue '${desk.name}' could not be purged: the bus lost what it was asked`);
  }
}

/** What is purged was in the log by now. */
async function purgeEnd({ bus, topology, settling }: Desk): Promise<number> {
  await settling.settled();
  const last = await bus.lastSequence();
  // Once is enough: what is purged was published before, so every interval that holds it is known after this.
  await topology.fence();
  return last;
}

/** Takes and acknowledges what is ready up to `last`. */
async function purgeOnce(desk: Desk, last: number): Promise<Purged> {
  const { pulling, settling } = desk;
  await pulling.pause();
  try {
    await settling.settled();
    const purged = await takeAll(desk, last);
    await settling.settled();
    return purged;
  } finally {
    pulling.resume();
  }
}

async function takeAll(desk: Desk, last: number): Promise<Purged> {
  const { bus, name, held, settling, redelivery, dealing, options } = desk;
  const line = new NoWaitLine(bus, name, (stray) => settling.putBack(stray));
  /** Younger than the purge; kept until the end, or it would come again and again. */
  const younger: Incoming[] = [];
  let purged = 0;
  const lag = new Lag(bus, last);
  let looks = 0;
  try {
    for (;;) {
      const { messages, why } = await line.ask(BATCH);
      let past = false;
      for (const message of messages) {
        if (held.renew(message)) continue;
        if (message.sequence > last) {
          younger.push(message);
          // What was put back comes first, in any order; what never went out comes ascending.
          if (message.attempts === 1) past = true;
          continue;
        }
        // Without it this process may settle nothing.
        if (!options.holdsLease()) return { messages: purged, lost: true };
        settling.finish(message);
        // What is undecided is gone by this for good: it was in the queue.
        const wasInside = dealing.sieve.holds(message) || dealing.sieve.isUndecided(message);
        if (wasInside && !isExpired(message, options, 0)) purged++;
      }
      if (past || why === "gone") return { messages: purged, lost: false };
      if (why === "lost") return { messages: purged, lost: true };
      if (why === undefined) continue;
      const left = await isLeft(desk, why, lag, younger.length);
      if (left === "no" || (left === "maybe" && ++looks > LOOKS)) return { messages: purged, lost: false };
    }
  } finally {
    await line.close().catch(() => undefined);
    for (const message of younger) {
      redelivery.handedBack(message.sequence, message.attempts);
      settling.putBack(message);
    }
  }
}

/** The cursor may not have heard of the log's latest message yet, and an ask whose time was up says nothing of it. */
async function isLeft(
  desk: Desk,
  why: "empty" | "expired",
  lag: Lag,
  younger: number,
): Promise<"yes" | "maybe" | "no"> {
  const { bus, name, held, settling, options } = desk;
  await settling.settled();
  const state = await bus.cursorState(name);
  if (state === undefined) return "no";
  if (await lag.isBehind((until) => anyAbove(bus, state.filters, state.delivered, until))) return "yes";
  if (why === "empty") return "no";
  const elsewhere = (await options.heldElsewhere(name)).size;
  return state.ackPending > held.size + younger + elsewhere ? "maybe" : "no";
}
