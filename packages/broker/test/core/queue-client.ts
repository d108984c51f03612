/** A client of a queue, which notes what it is given; and the numbers by which tests tell messages apart. */
import { Credit } from "../../src/core/credit.ts";
import type { Delivery } from "../../src/core/message.ts";
import type { SubscribeOptions, Subscriber } from "../../src/core/verbs.ts";

/** A consumer with a prefetch: notes what it is given, grants when it settles. */
export class Client implements Subscriber {
  readonly credits: readonly Credit[];
  readonly got: Delivery[] = [];
  readonly unsettled: Set<Delivery> = new Set<Delivery>();
  most = 0;
  isCancelled: boolean = false;
  /** Runs in the turn of each delivery. */
  onDeliver: ((delivery: Delivery) => void) | undefined;

  constructor(prefetch: number | readonly Credit[]) {
    this.credits = typeof prefetch === "number" ? [new Credit(prefetch)] : prefetch;
  }

  deliver(delivery: Delivery): void {
    this.got.push(delivery);
    this.unsettled.add(delivery);
    this.most = Math.max(this.most, this.unsettled.size);
    this.onDeliver?.(delivery);
  }

  cancelled(): void {
    this.isCancelled = true;
  }

  get numbers(): number[] {
    return this.got.map(numberOf);
  }

  ack(delivery: Delivery): void {
    this.unsettled.delete(delivery);
    delivery.settle("complete");
    for (const credit of this.credits) credit.grant(1);
  }

  ackAll(): void {
    for (const delivery of [...this.unsettled]) this.ack(delivery);
  }
}

/** How it subscribes who acknowledges. */
export function acknowledged(client: Client): SubscribeOptions {
  return { acknowledge: true, exclusive: false, credits: client.credits };
}

/** The number that `Site.publish` wrote into it. */
export function numberOf(delivery: Delivery): number {
  return Number(Buffer.from(delivery.body).toString());
}

/** As a client that hands back all of these at once. */
export function requeue(deliveries: readonly Delivery[]): void {
  for (const delivery of deliveries) delivery.settle("requeue");
}

/** Consecutive numbers from 0. */
export function numbers(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, place) => first + place);
}
