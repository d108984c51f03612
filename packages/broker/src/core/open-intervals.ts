/**
 * What of a binding's record counts: the intervals of the present life of its queue, and how far their undoing has come.
 *
 * Used by: bindings, closing, exchanges, chores, reconcile, count, replica. Separate because it is pure, and every one
 * of them must mean the same by it.
 */
import type { Binding, Exchange, Interval, Queue } from "@amqp/topology";

/** The intervals of this life of the queue: an earlier one's are void. */
export function living(binding: Binding | undefined, queue: Queue): readonly Interval[] {
  return binding?.intervals.filter((interval) => interval.queueId === queue.id) ?? [];
}

/** Whether a binding stands: an open interval of this life of the queue. */
export function hasOpen(binding: Binding | undefined, queue: Queue): boolean {
  return living(binding, queue).some((interval) => interval.until === undefined);
}

/** The open interval of these lives of the queue and the exchange. */
export function openInterval(binding: Binding | undefined, queue: Queue, exchange: Exchange): Interval | undefined {
  return living(binding, queue).find((interval) => interval.until === undefined && interval.exchangeId === exchange.id);
}

/** Whether an undoing of it has begun and has not come to its end. */
export function hasClosing(binding: Binding | undefined, queue: Queue): boolean {
  return living(binding, queue).some(({ closing }) => closing === true);
}

/** As {@link hasClosing}, of any life of the queue. */
export function isClosing({ intervals }: Binding): boolean {
  return intervals.some(({ closing }) => closing === true);
}
