/**
 * What one connection may have at most (design §9): consumers, queues it declared, bindings it made; and what its
 * namespace may have, counted in the mirror, so up to what is under way.
 *
 * Used by: handlers queue and basic. Separate because the counts belong to the connection and the commands to channels.
 * Queues also go without a word to this connection (auto-delete, deleted by others), and their bindings with them: at a
 * limit those that are gone are struck out first, so a connection may make temporary ones for ever.
 */
import type { Verbs } from "../core/verbs.ts";
import { type Refusal, refuse } from "../refusals.ts";
import type { Limits } from "./limits.ts";

export class Quota {
  readonly #limits: Limits;
  readonly #verbs: () => Verbs;
  /** How many bindings it made, by queue it declared or bound. */
  readonly #queues: Map<string, number> = new Map<string, number>();
  #bindings = 0;
  #consumers = 0;

  /** @param verbs what the connection may use, once it was let in. */
  constructor(limits: Limits, verbs: () => Verbs) {
    this.#limits = limits;
    this.#verbs = verbs;
  }

  /** May it declare a queue of that name? */
  forQueue(name: string): Refusal | undefined {
    const { queues, namespaceQueues } = this.#limits;
    if (this.#verbs().size.queues >= namespaceQueues && !isQueue(this.#verbs(), name)) {
      return refuse("too-many-in-namespace", { text: "queues", present: `${namespaceQueues}` });
    }
    const fits = (): boolean => this.#queues.has(name) || this.#queues.size < queues;
    return this.#check(fits, "queues", queues);
  }

  declared(name: string): void {
    if (!this.#queues.has(name)) this.#queues.set(name, 0);
  }

  deleted(name: string): void {
    this.#bindings -= this.#queues.get(name) ?? 0;
    this.#queues.delete(name);
  }

  forBindings(count: number): Refusal | undefined {
    const { namespaceBindings } = this.#limits;
    if (this.#verbs().size.bindings + count > namespaceBindings) {
      return refuse("too-many-in-namespace", { text: "bindings", present: `${namespaceBindings}` });
    }
    return this.#check(() => this.#bindings + count <= this.#limits.bindings, "bindings", this.#limits.bindings);
  }

  bound(queue: string): void {
    this.#queues.set(queue, (this.#queues.get(queue) ?? 0) + 1);
    this.#bindings++;
  }

  unbound(queue: string): void {
    const bound = this.#queues.get(queue) ?? 0;
    if (bound === 0) return;
    this.#queues.set(queue, bound - 1);
    this.#bindings--;
  }

  forConsumer(): Refusal | undefined {
    return this.#check(() => this.#consumers < this.#limits.consumers, "consumers", this.#limits.consumers);
  }

  consuming(change: 1 | -1): void {
    this.#consumers += change;
  }

  #check(fits: () => boolean, what: string, limit: number): Refusal | undefined {
    if (fits()) return undefined;
    for (const queue of [...this.#queues.keys()]) if (!isQueue(this.#verbs(), queue)) this.deleted(queue);
    return fits() ? undefined : refuse("too-many", { text: what, present: `${limit}` });
  }
}

/** Whether that queue is there, as far as the mirror knows: each is reached by its name through the default exchange. */
function isQueue(verbs: Verbs, name: string): boolean {
  const route = verbs.route("", name);
  return route.kind === "route" && verbs.routable(route);
}
