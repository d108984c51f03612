// What the mirror must answer, said in the simplest way: the records as they were written last, looked through each time.
import {
  antichain,
  type ExchangeKind,
  implicitFilter,
  isFault,
  keyMatches,
  toFilters,
  toSubject,
} from "@amqp/translator";
import fc from "fast-check";
import type { BindingRecord, ExchangeRecord, Interval, QueueRecord } from "../src/entities.ts";
import { bindingKey, exchangeKey, queueKey } from "../src/keys.ts";
import { exchangeRecord, queueRecord } from "./records.ts";

export const QUEUES = ["p", "q"];
export const EXCHANGES = ["x", "y"];
const BINDING_KEYS = ["", "a", "a.b", "#", "a.#", "*", "a.*", "*.b"];
export const ROUTING_KEYS = ["", "a", "a.b", "a.c", "b", "a.b.c", "p", "q"];
const IDS = [1, 2];

type WithId<T> = T & { readonly id: number };

/** AMQP's rules over plain lists, without an index, a cache or a filter. */
export class Model {
  readonly exchanges = new Map<string, WithId<ExchangeRecord>>();
  readonly queues = new Map<string, WithId<QueueRecord>>();
  readonly bindings = new Map<string, BindingRecord & { queue: string; exchange: string; key: string }>();

  routes(exchange: string, routingKey: string): boolean {
    if (exchange === "") return this.queues.get(routingKey)?.state === "ready";
    return [...this.bindings.values()].some((binding) => {
      const queue = this.queues.get(binding.queue);
      const from = this.exchanges.get(binding.exchange);
      if (binding.exchange !== exchange || queue?.state !== "ready" || from?.state !== "ready") return false;
      return binding.intervals.some(
        ({ until, queueId, exchangeId, kind }) =>
          until === undefined &&
          queueId === queue.id &&
          exchangeId === from.id &&
          keyMatches(kind, binding.key, routingKey),
      );
    });
  }

  holds(name: string, exchange: string, routingKey: string, sequence: number): boolean {
    const queue = this.queues.get(name);
    if (queue === undefined) return false;
    if (exchange === "") return routingKey === name && sequence > queue.from;
    return this.#valid(name).some(
      ([binding, { from, until, kind }]) =>
        binding.exchange === exchange &&
        keyMatches(kind, binding.key, routingKey) &&
        sequence > from &&
        sequence <= (until ?? Number.POSITIVE_INFINITY),
    );
  }

  isUndecided(name: string, exchange: string, routingKey: string, sequence: number): boolean {
    if (exchange === "" || this.holds(name, exchange, routingKey, sequence)) return false;
    return this.#valid(name).some(
      ([binding, { until, closing, kind }]) =>
        closing === true &&
        binding.exchange === exchange &&
        keyMatches(kind, binding.key, routingKey) &&
        sequence > (until ?? 0),
    );
  }

  filters(name: string): string[] {
    const filters = [implicitFilter(name)];
    for (const [{ exchange, key }, { kind }] of this.#valid(name)) {
      const found = toFilters(kind, exchange, key);
      if (!isFault(found)) filters.push(...found);
    }
    return antichain(filters);
  }

  #valid(name: string) {
    const id = this.queues.get(name)?.id;
    return [...this.bindings.values()].flatMap((binding) =>
      binding.queue !== name
        ? []
        : binding.intervals.filter(({ queueId }) => queueId === id).map((interval) => [binding, interval] as const),
    );
  }
}

type Step = (model: Model) => { key: string; record: object | undefined };

const kind = fc.constantFrom<ExchangeKind>("direct", "fanout", "topic");
const id = fc.constantFrom(...IDS);
export const interval: fc.Arbitrary<Interval> = fc
  .record({
    from: fc.nat(5),
    length: fc.option(fc.nat(4), { nil: undefined }),
    isClosing: fc.boolean(),
    queueId: id,
    exchangeId: id,
    kind,
  })
  .map(({ from, length, isClosing, ...rest }) => ({
    from,
    ...rest,
    ...(length === undefined ? {} : { until: from + length }),
    ...(length !== undefined && isClosing ? { closing: true as const } : {}),
  }));

const exchangeStep: fc.Arbitrary<Step> = fc
  .record({
    name: fc.constantFrom(...EXCHANGES),
    gone: fc.boolean(),
    record: fc.record({ state: fc.constantFrom("ready" as const, "deleting" as const), kind }),
    id,
  })
  .map(({ name, gone, record, id }) => (model) => {
    const stored = { ...exchangeRecord(record), id };
    if (gone) model.exchanges.delete(name);
    else model.exchanges.set(name, stored);
    return { key: exchangeKey(name), record: gone ? undefined : stored };
  });

const queueStep: fc.Arbitrary<Step> = fc
  .record({
    name: fc.constantFrom(...QUEUES),
    gone: fc.boolean(),
    record: fc.record({
      state: fc.constantFrom("making" as const, "ready" as const, "deleting" as const),
      from: fc.nat(5),
    }),
    id,
  })
  .map(({ name, gone, record, id }) => (model) => {
    const stored = { ...queueRecord(record), id };
    if (gone) model.queues.delete(name);
    else model.queues.set(name, stored);
    return { key: queueKey(name), record: gone ? undefined : stored };
  });

const bindingStep: fc.Arbitrary<Step> = fc
  .record({
    queue: fc.constantFrom(...QUEUES),
    exchange: fc.constantFrom(...EXCHANGES),
    key: fc.constantFrom(...BINDING_KEYS),
    arguments: fc.constantFrom("", '{"a":1}'),
    intervals: fc.option(fc.array(interval, { maxLength: 3 }), { nil: undefined, freq: 5 }),
  })
  .map(({ intervals, ...at }) => (model) => {
    const key = bindingKey(at);
    if (intervals === undefined) model.bindings.delete(key);
    else model.bindings.set(key, { ...at, intervals });
    return { key, record: intervals && { arguments: at.arguments, intervals } };
  });

export const steps = fc.array(fc.oneof(exchangeStep, queueStep, { arbitrary: bindingStep, weight: 3 }), {
  maxLength: 30,
});

export function subjectOf(exchange: string, routingKey: string): string {
  const subject = toSubject(exchange, routingKey);
  if (isFault(subject)) throw new Error(subject.text);
  return subject;
}
