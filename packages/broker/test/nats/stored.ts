// How much of the log is somebody's: all but what always stands in it (src/nats/keeper.ts).
import type { Bus } from "../../src/core/bus.ts";

const KEEPER = "amqp.$keeper";

/** The sequences of the messages that stand there for nobody: one, two for a moment while it is renewed. */
export async function standing(bus: Bus): Promise<number[]> {
  const found: number[] = [];
  for (let at = await bus.nextAbove(KEEPER, 0); at !== undefined; at = await bus.nextAbove(KEEPER, at)) found.push(at);
  return found;
}

/** Messages that are in the log for some queue. */
export async function stored(bus: Bus): Promise<number> {
  for (;;) {
    const before = await standing(bus);
    const { messages } = await bus.logState();
    const after = await standing(bus);
    if (`${before}` === `${after}`) return messages - after.length;
  }
}
