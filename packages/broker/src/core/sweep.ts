/**
 * Putting back what was delivered and that nobody holds (design §6, SWEEP).
 *
 * Responsibilities: heals a dead client of the bus, a restart of the bus and a lost settlement alike, without a
 * ledger: whatever lies between the cursor's ack floor and its latest delivery and is in no hands is nak'd, ascending.
 * Used by: queue, in its turn. Separate because it speaks of deliveries whose tokens nobody has.
 */
import type { Desk } from "./desk.ts";

/** Naks between two breaths of the loop, each of them answered before the next. */
const STRIDE = 5_000;

export async function sweep(desk: Desk, elsewhere: ReadonlySet<number>): Promise<void> {
  const { pulling, settling, bus, name, held, options } = desk;
  await pulling.pause();
  try {
    await settling.settled();
    const state = await bus.cursorState(name);
    if (state === undefined) return;
    // Nothing is out but what is held: the common case, and no walk through a long stretch of the log.
    if (state.ackPending <= held.knownAt(state.deliveredSequence) + elsewhere.size) return;
    // Some may have been acknowledged, and the bus never heard of it. These arrive before the naks, which then do nothing.
    settling.sayAgain(state.ackFloor);
    let told = 0;
    for (let sequence = state.ackFloor + 1; sequence <= state.delivered; sequence++) {
      if (held.has(sequence) || elsewhere.has(sequence)) continue;
      if (!options.holdsLease()) return;
      bus.nakAbandoned(name, sequence, state.deliveredSequence);
      if (++told % STRIDE === 0) await bus.settled(name);
    }
    await bus.settled(name);
  } finally {
    pulling.resume();
  }
}
