/**
 * What is bound now: does any ready queue take a message published to this exchange under this subject?
 *
 * Used by: mirror; through it the broker's mandatory publishes ask, so it is an index over the open bindings of all
 * queues and no scan of queues. Separate from `intervals`, which looks at one queue and also at what was.
 */
import { FilterIndex } from "@amqp/translator";
import type { Binding, Interval } from "./entities.ts";
import { filtersOf } from "./intervals.ts";

/** An open interval of a binding. */
export interface Open {
  readonly binding: Binding;
  readonly interval: Interval;
}

/** How many subjects an exchange remembers; beyond that it starts afresh. */
const CACHED_SUBJECTS = 4096;

/** The open bindings of all queues by subject. */
export class Routes {
  readonly #root: string;
  readonly #counts: (open: Open) => boolean;
  readonly #index = new FilterIndex<Open>();
  readonly #indexed = new Map<string, readonly (readonly [filter: string, open: Open])[]>();
  /** Exchange → subject → the answer. */
  readonly #caches = new Map<string, Map<string, boolean>>();

  /** `counts` says whether an open interval is one of the present, ready life of its queue and its exchange. */
  constructor(root: string, counts: (open: Open) => boolean) {
    this.#root = root;
    this.#counts = counts;
  }

  /** A binding's record changed, or is gone. */
  setBinding(key: string, exchange: string, binding: Binding | undefined): void {
    this.forget(exchange);
    for (const [filter, open] of this.#indexed.get(key) ?? []) this.#index.remove(filter, open);
    this.#indexed.delete(key);
    if (binding === undefined) return;
    const pairs: (readonly [string, Open])[] = [];
    for (const interval of binding.intervals) {
      if (interval.until !== undefined) continue;
      const open: Open = { binding, interval };
      for (const filter of filtersOf(binding, interval, this.#root)) {
        this.#index.add(filter, open);
        pairs.push([filter, open]);
      }
    }
    if (pairs.length > 0) this.#indexed.set(key, pairs);
  }

  /** What `counts` says of this exchange's bindings may have changed. */
  forget(exchange: string): void {
    this.#caches.delete(exchange);
  }

  /** Whether any open binding that counts matches the subject, which is one of this exchange's. */
  matches(exchange: string, subject: string): boolean {
    let cache = this.#caches.get(exchange);
    const known = cache?.get(subject);
    if (known !== undefined) return known;
    const found = this.#index.some(subject, this.#counts);
    if (cache === undefined || cache.size >= CACHED_SUBJECTS) {
      cache = new Map();
      this.#caches.set(exchange, cache);
    }
    cache.set(subject, found);
    return found;
  }
}
