/**
 * The verbs of a login whose rights are the bus's: what changes the topology is tried as that login first, and so is
 * taking from a queue; publishing is tried by being done.
 *
 * Used by: open-accounts. Separate because it decides nothing: each verb asks the bus for one right, and goes on or
 * refuses with the subject.
 */
import { bindingKey, exchangeKey, queueKey } from "@amqp/topology";
import { checkName } from "@amqp/translator";
import type { PublishSink } from "../core/bus.ts";
import type { Delivery, Properties } from "../core/message.ts";
import { generatedName } from "../core/names.ts";
import type { Rights } from "../core/rights.ts";
import type {
  BindingSpec,
  ExchangeSpec,
  FrontEnd,
  QueueCounts,
  QueueSpec,
  Route,
  Session,
  SubscribeOptions,
  Subscriber,
  Subscription,
  Verbs,
} from "../core/verbs.ts";
import { type Refusal, refuse } from "../refusals.ts";

export class PermittedVerbs implements Verbs {
  readonly #verbs: Verbs;
  readonly #rights: Rights;

  constructor(verbs: Verbs, rights: Rights) {
    this.#verbs = verbs;
    this.#rights = rights;
  }

  async declareExchange(spec: ExchangeSpec): Promise<Refusal | undefined> {
    return (await this.#forExchange(spec.name)) ?? this.#verbs.declareExchange(spec);
  }

  async deleteExchange(name: string, options: { readonly ifUnused: boolean }): Promise<Refusal | undefined> {
    return (await this.#forExchange(name)) ?? this.#verbs.deleteExchange(name, options);
  }

  async declareQueue(session: Session, spec: QueueSpec): Promise<Refusal | QueueCounts> {
    const named = spec.name === "" ? { ...spec, name: generatedName() } : spec;
    return (await this.#forQueue(named.name)) ?? this.#verbs.declareQueue(session, named);
  }

  async deleteQueue(
    session: Session,
    name: string,
    options: { readonly ifUnused: boolean; readonly ifEmpty: boolean },
  ): Promise<Refusal | { readonly messages: number }> {
    return (await this.#forQueue(name)) ?? this.#verbs.deleteQueue(session, name, options);
  }

  async bind(
    session: Session,
    bindings: readonly BindingSpec[],
  ): Promise<{ readonly done: number; readonly refusal: Refusal | undefined }> {
    const refusals = await Promise.all(bindings.map((binding) => this.#forBinding(binding)));
    const first = refusals.findIndex((refusal) => refusal !== undefined);
    if (first < 0) return await this.#verbs.bind(session, bindings);
    // In this order, up to the first refusal.
    const bound =
      first === 0 ? { done: 0, refusal: undefined } : await this.#verbs.bind(session, bindings.slice(0, first));
    return { done: bound.done, refusal: bound.refusal ?? refusals[first] };
  }

  async unbind(session: Session, binding: BindingSpec): Promise<Refusal | undefined> {
    return (await this.#forBinding(binding)) ?? this.#verbs.unbind(session, binding);
  }

  async purgeQueue(session: Session, name: string): Promise<Refusal | { readonly messages: number }> {
    return (await this.#forConsuming(name)) ?? this.#verbs.purgeQueue(session, name);
  }

  async subscribe(
    session: Session,
    queue: string,
    subscriber: Subscriber,
    options: SubscribeOptions,
  ): Promise<Refusal | Subscription> {
    return (await this.#forConsuming(queue)) ?? this.#verbs.subscribe(session, queue, subscriber, options);
  }

  async get(
    session: Session,
    queue: string,
    options: { readonly acknowledge: boolean },
  ): Promise<Refusal | { readonly delivery: Delivery | undefined; readonly messages: number }> {
    return (await this.#forConsuming(queue)) ?? this.#verbs.get(session, queue, options);
  }

  // What is read, and what the bus answers by itself.

  openSession(): Session {
    return this.#verbs.openSession();
  }

  closeSession(session: Session): Promise<void> {
    return this.#verbs.closeSession(session);
  }

  checkExchange(name: string): Promise<Refusal | undefined> {
    return this.#verbs.checkExchange(name);
  }

  checkQueue(session: Session, name: string): Promise<Refusal | QueueCounts> {
    return this.#verbs.checkQueue(session, name);
  }

  get topologyVersion(): number {
    return this.#verbs.topologyVersion;
  }

  route(exchange: string, routingKey: string): Route | Refusal {
    return this.#verbs.route(exchange, routingKey);
  }

  get size(): { readonly queues: number; readonly bindings: number } {
    return this.#verbs.size;
  }

  get isCurrent(): boolean {
    return this.#verbs.isCurrent;
  }

  get holdsLease(): boolean {
    return this.#verbs.holdsLease;
  }

  routable(route: Route): boolean {
    return this.#verbs.routable(route);
  }

  fence(): Promise<void> {
    return this.#verbs.fence();
  }

  publish(route: Route, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void {
    this.#verbs.publish(route, properties, body, sink, tag);
  }

  get maxMessageSize(): number {
    return this.#verbs.maxMessageSize;
  }

  encodedSize(propertiesLength: number): number {
    return this.#verbs.encodedSize(propertiesLength);
  }

  get room(): boolean {
    return this.#verbs.room;
  }

  requeue(deliveries: readonly Delivery[]): void {
    this.#verbs.requeue(deliveries);
  }

  join(frontEnd: FrontEnd): void {
    this.#verbs.join(frontEnd);
  }

  leave(frontEnd: FrontEnd): void {
    this.#verbs.leave(frontEnd);
  }

  // A name that is none has no key to try: the verb itself refuses it, and changes nothing.

  async #forExchange(name: string): Promise<Refusal | undefined> {
    return checkName("exchange", name) === undefined ? await this.#toWrite(exchangeKey(name)) : undefined;
  }

  async #forQueue(name: string): Promise<Refusal | undefined> {
    return checkName("queue", name) === undefined ? await this.#toWrite(queueKey(name)) : undefined;
  }

  async #forBinding(binding: BindingSpec): Promise<Refusal | undefined> {
    const isOne = checkName("queue", binding.queue) ?? checkName("exchange", binding.exchange);
    return isOne === undefined ? await this.#toWrite(bindingKey(binding)) : undefined;
  }

  async #forConsuming(queue: string): Promise<Refusal | undefined> {
    if (checkName("queue", queue) !== undefined) return undefined;
    return toRefusal(await this.#rights.toConsume(queue));
  }

  async #toWrite(key: string): Promise<Refusal | undefined> {
    return toRefusal(await this.#rights.toWrite(key));
  }
}

function toRefusal(denied: string | undefined): Refusal | undefined {
  return denied === undefined ? undefined : refuse("not-permitted", { text: denied });
}
