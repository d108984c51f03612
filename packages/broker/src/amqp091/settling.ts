/**
 * Ending what a channel held: to the queue it came from, and its credit back to who was bounded by it.
 *
 * Used by: handlers/basic. Separate because both halves belong together and in this order: the queue is told first, so
 * that what is granted next is delivered behind it.
 */
import type { Outcome } from "../core/message.ts";
import type { Channel } from "./channel.ts";
import type { Consumer, Held } from "./consumer.ts";

/** Ends deliveries that were taken out of the channel's unacked ones. */
export function settle(channel: Channel, held: readonly Held[], how: Outcome): void {
  if (how === "requeue") channel.verbs.requeue(held.map((one) => one.delivery));
  else for (const one of held) one.delivery.settle(how);
  // Those of one consumer mostly stand together: its credit is given back once.
  let consumer: Consumer | undefined;
  let together = 0;
  let consumed = 0;
  for (const one of held) {
    if (one.consumer !== consumer) {
      consumer?.prefetch.settled(together);
      consumer = one.consumer;
      together = 0;
    }
    together++;
    if (one.consumer !== undefined) consumed++;
  }
  consumer?.prefetch.settled(together);
  if (consumed > 0) channel.prefetch.settled(consumed);
}
