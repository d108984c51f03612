/**
 * The leader's verbs, put together from the parts that do them.
 *
 * Used by: leader, for lead. Separate from the parts because none of them knows how it is asked, and from changes
 * because that is only the contract.
 */
import { isRefusal, type Refusal } from "../refusals.ts";
import type { Bindings } from "./bindings.ts";
import type { Asker, Changes, Done } from "./changes.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Queues } from "./queues.ts";
import type { Sweeper } from "./sweeper.ts";
import type { BindingSpec, ExchangeSpec, QueueSpec } from "./verbs.ts";

export class Changing implements Changes {
  readonly #exchanges: Exchanges;
  readonly #queues: Queues;
  readonly #bindings: Bindings;
  readonly #sweeper: Sweeper;

  constructor(exchanges: Exchanges, queues: Queues, bindings: Bindings, sweeper: Sweeper) {
    this.#exchanges = exchanges;
    this.#queues = queues;
    this.#bindings = bindings;
    this.#sweeper = sweeper;
  }

  async ready(): Promise<true> {
    return true;
  }

  declareExchange(spec: ExchangeSpec): Promise<Done> {
    return this.#exchanges.declare(spec);
  }

  deleteExchange({ name, ifUnused }: { readonly name: string; readonly ifUnused: boolean }): Promise<Done> {
    return this.#exchanges.delete(name, { ifUnused });
  }

  declareQueue({
    asker,
    spec,
  }: {
    readonly asker: Asker;
    readonly spec: QueueSpec;
  }): Promise<Refusal | { readonly made: boolean }> {
    return this.#queues.declare(asker, spec);
  }

  deleteQueue({
    asker,
    name,
    ...options
  }: {
    readonly asker: Asker;
    readonly name: string;
    readonly ifUnused: boolean;
    readonly ifEmpty: boolean;
  }): Promise<Refusal | { readonly messages: number }> {
    return this.#queues.delete(asker, name, options);
  }

  async deleteOwned({ asker, names }: { readonly asker: Asker; readonly names: readonly string[] }): Promise<Done> {
    await this.#queues.deleteOwned(asker.connection, names);
    return undefined;
  }

  async renamed({ before, after }: { readonly before: string; readonly after: string }): Promise<Done> {
    await this.#queues.renamed(before, after);
    return undefined;
  }

  async bind({
    asker,
    bindings,
  }: {
    readonly asker: Asker;
    readonly bindings: readonly BindingSpec[];
  }): Promise<{ readonly done: number; readonly refusal?: Refusal }> {
    const { done, refusal } = await this.#bindings.bind(asker.connection, bindings);
    return refusal === undefined ? { done } : { done, refusal };
  }

  async unbind({ asker, binding }: { readonly asker: Asker; readonly binding: BindingSpec }): Promise<Done> {
    const closed = await this.#bindings.unbind(asker.connection, binding);
    if (isRefusal(closed)) return closed;
    if (closed) await this.#exchanges.bindingsWent(binding.exchange);
    return undefined;
  }

  async consume({
    asker,
    queue,
    exclusive,
  }: {
    readonly asker: Asker;
    readonly queue: string;
    readonly exclusive: boolean;
  }): Promise<Done> {
    await this.#sweeper.over(queue);
    return this.#queues.consume(asker, queue, exclusive);
  }

  async consumed({
    replica,
    queue,
    queueId,
  }: {
    readonly replica: string;
    readonly queue: string;
    readonly queueId: number;
  }): Promise<Done> {
    await this.#queues.consumed(replica, queue, queueId);
    return undefined;
  }

  async doubt({ queue, upTo }: { readonly queue: string; readonly upTo: number }): Promise<Done> {
    await this.#queues.doubt(queue, upTo);
    return undefined;
  }

  async sweep({ queue }: { readonly queue: string }): Promise<{ readonly written: number }> {
    return { written: await this.#sweeper.sweep(queue) };
  }
}
