/**
 * What one connection may have at most (design §9): consumers, queues it declared, bindings it made.
 *
 * Used by: handlers queue and basic. Separate because the counts belong to the connection and the commands to channels.
 */
import { type Refusal, refuse } from "../refusals.ts";
import type { Limits } from "./limits.ts";

export class Quota {
  readonly #limits: Limits;
  readonly #queues: Set<string> = new Set<string>();
  #bindings = 0;
  #consumers = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** May it declare a queue of that name? */
  forQueue(name: string): Refusal | undefined {
    if (this.#queues.has(name)) return undefined;
    return check("queues", this.#queues.size, 1, this.#limits.queues);
  }

  declared(name: string): void {
    this.#queues.add(name);
  }

  deleted(name: string): void {
    this.#queues.delete(name);
  }

  forBindings(count: number): Refusal | undefined {
    return check("bindings", this.#bindings, count, this.#limits.bindings);
  }

  bound(count: number): void {
    this.#bindings += count;
  }

  unbound(): void {
    this.#bindings = Math.max(0, this.#bindings - 1);
  }

  forConsumer(): Refusal | undefined {
    return check("consumers", this.#consumers, 1, this.#limits.consumers);
  }

  consuming(change: 1 | -1): void {
    this.#consumers += change;
  }
}

function check(what: string, present: number, more: number, limit: number): Refusal | undefined {
  return present + more > limit ? refuse("too-many", { text: what, present: `${limit}` }) : undefined;
}
