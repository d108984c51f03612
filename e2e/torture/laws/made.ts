// Small histories made by hand for the laws' tests: a right one, and its parts with one thing changed. Separate because
// both test files differ from the same right history.
import {
  type Delivery,
  emptyHistory,
  type Fault,
  type History,
  type Life,
  type Operation,
  type Ownership,
  type Publish,
} from "../history.ts";
import { check } from "./check.ts";

export const RIGHT = { message: "m1", queue: "q" };

export function publish(more: Partial<Publish> = {}): Publish {
  return {
    id: "m1",
    channel: "p/0",
    place: 1,
    exchange: "x",
    routingKey: "a",
    mandatory: false,
    gateway: 0,
    sent: 1_000,
    answered: 1_010,
    outcome: "acked",
    ...more,
  };
}

export function delivery(more: Partial<Delivery> = {}): Delivery {
  return {
    id: "m1",
    queue: "q",
    exchange: "x",
    routingKey: "a",
    redelivered: false,
    gateway: 1,
    consumer: "c/0",
    consumerSent: 900,
    at: 1_020,
    settlement: "ack",
    settledAt: 1_030,
    syncedAt: 1_040,
    ...more,
  };
}

export function operation(
  kind: Operation["kind"],
  sent: number,
  answered: number,
  more: Partial<Operation> = {},
): Operation {
  const [queue, exchange] = [kind.includes("exchange") ? "" : "q", kind === "declare" ? "" : "x"];
  return { kind, queue, exchange, key: "a", gateway: 0, sent, answered, outcome: "ok", ...more };
}

export function unknown(kind: Operation["kind"], sent: number): Operation {
  const { answered: _, ...rest } = operation(kind, sent, 0);
  return { ...rest, outcome: "unknown" };
}

export function life(more: Partial<Life> = {}): Life {
  return {
    consumer: "c/0",
    queue: "q",
    noAck: false,
    gateway: 1,
    from: 900,
    leaving: 1_100,
    ended: 1_110,
    inOrder: true,
    ...more,
  };
}

export function purge(sent: number, answered: number, messages: number): Operation {
  return operation("purge", sent, answered, { exchange: "", key: "", messages });
}

export function ownership(more: Partial<Ownership> = {}): Ownership {
  return {
    queue: "own",
    owner: "o/0",
    gateway: 1,
    sent: 1_000,
    answered: 1_010,
    until: 20_000,
    ended: 20_010,
    ...more,
  };
}

/** Exchange, queue and binding stand; one message is published, delivered and acknowledged; the queue is drained and deleted. */
export function right(): History {
  const history = emptyHistory({ x: "direct" });
  history.operations.push(
    operation("declare-exchange", 100, 110),
    operation("declare", 200, 210),
    operation("bind", 300, 310),
  );
  history.publishes.push(publish());
  history.deliveries.push(delivery());
  history.drained.set("q", 90_000);
  history.operations.push(operation("delete", 95_000, 95_010));
  history.leftovers = { messages: 0, consumers: [], keys: [], leases: 3, live: 3 };
  return history;
}

export function laws(history: History): string[] {
  return check(history).map(({ law }) => law);
}

export function wrong(change: (history: History) => void): string[] {
  const history = right();
  change(history);
  return laws(history);
}

export const fault = (kind: Fault["kind"], target: number, from: number, until: number): Fault => ({
  kind,
  target,
  from,
  until,
});
