// What the model test does to a broker: random operations from a seed, their spelling in a report, and the search for a
// shorter failing history. An operation means something in every state (it is skipped where its queue or exchange is not
// there), so any part of a history is a history: that is what makes shrinking simple. Used by bindings.test.ts.
import * as fc from "fast-check";
import type { Kind, Model } from "./model.ts";

/** Queues and exchanges share these names on purpose: deleting one must not touch the other. */
export const NAMES = ["n0", "n1", "n2", "n3"] as const;
/** Channels that take and settle. */
export const CHANNELS = [1, 2] as const;

const KEYS = ["", "a", "b", "a.b", "a.c", "a.b.c", "b.c"];
const BINDING_KEYS: Readonly<Record<Kind, readonly string[]>> = {
  direct: ["", "a", "b", "a.b"],
  fanout: ["", "ignored"],
  topic: ["", "a", "a.b", "#", "a.#", "*", "a.*", "*.*", "*.b", "*.b.#", "a.b.c"],
};

export type Operation =
  | { readonly do: "declare queue" | "delete queue" | "purge" | "drain"; readonly queue: string }
  | { readonly do: "declare exchange"; readonly exchange: string; readonly kind: Kind }
  | { readonly do: "delete exchange"; readonly exchange: string }
  /** The key is the `key`-th of those that the exchange's kind, as it is then, can have. */
  | { readonly do: "bind" | "unbind"; readonly queue: string; readonly exchange: string; readonly key: number }
  /** The empty name is the default exchange, and the key then the queue's name. */
  | { readonly do: "publish"; readonly exchange: string; readonly key: string; readonly times: number }
  | { readonly do: "get"; readonly queue: string; readonly channel: number; readonly noAck: boolean }
  | { readonly do: "consume"; readonly queue: string; readonly channel: number; readonly prefetch: number }
  /** The `nth` (modulo their number) of what the channel holds. */
  | {
      readonly do: "ack" | "nack" | "discard";
      readonly channel: number;
      readonly nth: number;
      readonly multiple: boolean;
    }
  | { readonly do: "recover" | "close channel"; readonly channel: number };

const queue = fc.constantFrom(...NAMES);
const exchange = fc.constantFrom(...NAMES);
const channel = fc.constantFrom(...CHANNELS);
const nth = fc.nat(50);
const multiple = fc.boolean();

/** Names differ in how often they are drawn so that histories stay long on some and short-lived on others. */
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("declare queue" as const), queue }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete queue" as const), queue }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("purge" as const), queue }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("drain" as const), queue }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("declare exchange" as const),
      exchange,
      kind: fc.constantFrom<Kind[]>("direct", "fanout", "topic", "topic"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete exchange" as const), exchange }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant("bind" as const), queue, exchange, key: nth }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("unbind" as const), queue, exchange, key: nth }) },
  {
    weight: 26,
    arbitrary: fc.record({
      do: fc.constant("publish" as const),
      exchange,
      key: fc.constantFrom(...KEYS),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("publish" as const),
      exchange: fc.constant(""),
      key: queue,
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 20, arbitrary: fc.record({ do: fc.constant("get" as const), queue, channel, noAck: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("consume" as const),
      queue,
      channel,
      prefetch: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 7, arbitrary: fc.record({ do: fc.constant("ack" as const), channel, nth, multiple }) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant("nack" as const), channel, nth, multiple }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("discard" as const), channel, nth, multiple }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("recover" as const), channel }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("close channel" as const), channel }) },
);

/** The history of a seed: the same seed, the same operations. */
export function history(seed: number, steps: number): readonly Operation[] {
  return fc.sample(operation, { seed, numRuns: steps });
}

/** The binding key that an operation means on an exchange of this kind. */
export function bindingKey(kind: Kind | undefined, key: number): string {
  const keys = kind === undefined ? [] : BINDING_KEYS[kind];
  return keys[key % keys.length] ?? "";
}

/**
 * Whether the operation is possible as things stand; else it is skipped.
 *
 * @param holds whether a channel holds a delivery.
 */
export function isPossible(operation: Operation, model: Model, holds: (channel: number) => boolean): boolean {
  switch (operation.do) {
    case "declare queue":
      return !model.hasQueue(operation.queue);
    case "delete queue":
    case "purge":
    case "drain":
    case "get":
    case "consume":
      return model.hasQueue(operation.queue);
    case "declare exchange":
      return model.kindOf(operation.exchange) === undefined;
    case "delete exchange":
      return model.kindOf(operation.exchange) !== undefined;
    case "bind":
    case "unbind":
      return model.hasQueue(operation.queue) && model.kindOf(operation.exchange) !== undefined;
    case "publish":
      return operation.exchange === "" || model.kindOf(operation.exchange) !== undefined;
    case "ack":
    case "nack":
    case "discard":
    case "recover":
    case "close channel":
      return holds(operation.channel);
  }
}

/** One operation a line. */
export function spell(operations: readonly Operation[]): string {
  return operations
    .map(({ do: what, ...rest }) => {
      const details = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
      return `  ${what} ${details.join(" ")}`;
    })
    .join("\n");
}

/**
 * A shorter history that still fails: chunks are left out, half of it first, then ever smaller ones, as long as time
 * allows.
 *
 * @param fails runs a history from nothing; true where it fails.
 */
export async function shrink(
  failing: readonly Operation[],
  fails: (operations: readonly Operation[]) => Promise<boolean>,
  milliseconds: number,
): Promise<readonly Operation[]> {
  const end = Date.now() + milliseconds;
  let shortest = failing;
  for (let chunk = Math.ceil(shortest.length / 2); chunk >= 1; chunk = Math.floor(chunk / 2)) {
    for (let at = 0; at < shortest.length && Date.now() < end; ) {
      const without = [...shortest.slice(0, at), ...shortest.slice(at + chunk)];
      if (await fails(without)) shortest = without;
      else at += chunk;
    }
  }
  return shortest;
}
