/**
 * Exchanges: declare, check, delete.
 *
 * Responsibilities: equivalence (406), the default exchange (403), what cannot be an exchange here (the translator's
 * sentence), deletion in an order that survives a crash at any step, auto-delete with the last binding.
 * Used by: changing, queues, reconcile. An exchange is a record and nothing else on the bus: its lane orders its
 * changes.
 */
import type { Exchange, ExchangeRecord } from "@amqp/topology";
import { checkKind, checkName, isFault } from "@amqp/translator";
import { type Refusal, refuse } from "../refusals.ts";
import type { Bindings } from "./bindings.ts";
import { type Core, exchangeLane, refuseFault, untilWritten } from "./context.ts";
import { hasOpen } from "./open-intervals.ts";
import type { ExchangeSpec } from "./verbs.ts";

export class Exchanges {
  readonly #core: Core;
  readonly #bindings: Bindings;

  constructor(core: Core, bindings: Bindings) {
    this.#core = core;
    this.#bindings = bindings;
  }

  async declare(spec: ExchangeSpec): Promise<Refusal | undefined> {
    if (spec.name === "") return refuse("default-exchange");
    const kind = checkKind(spec.kind);
    if (isFault(kind)) return refuseFault(kind);
    const fault = checkName("exchange", spec.name);
    if (fault !== undefined) return refuseFault(fault);
    const record: ExchangeRecord = {
      state: "ready",
      kind,
      durable: spec.durable,
      autoDelete: spec.autoDelete,
      internal: spec.internal,
      arguments: spec.arguments,
    };
    return this.#core.lanes.run(exchangeLane(spec.name), () =>
      untilWritten(this.#core, async () => {
        const present = this.#core.topology.exchange(spec.name);
        if (present?.state === "ready") return difference(spec, present);
        if (present !== undefined) await this.finishDeletion(present);
        const written = await this.#core.topology.createExchange(spec.name, record);
        return written === "conflict" ? written : undefined;
      }),
    );
  }

  async check(name: string): Promise<Refusal | undefined> {
    if (name === "") return refuse("default-exchange");
    if (this.#core.topology.exchange(name)?.state === "ready") return undefined;
    await this.#core.topology.fence();
    return this.#core.topology.exchange(name)?.state === "ready"
      ? undefined
      : refuse("no-exchange", { exchange: name });
  }

  async delete(name: string, options: { readonly ifUnused: boolean }): Promise<Refusal | undefined> {
    if (name === "") return refuse("default-exchange");
    return this.#core.lanes.run(exchangeLane(name), async () => {
      await this.#core.topology.fence();
      return this.#delete(name, options.ifUnused);
    });
  }

  /** After bindings of it went: an auto-delete exchange goes with its last one. */
  async bindingsWent(name: string): Promise<void> {
    if (this.#core.topology.exchange(name)?.autoDelete !== true) return;
    await this.#core.lanes.run(exchangeLane(name), () => this.#delete(name, true));
  }

  async #delete(name: string, ifUnused: boolean): Promise<Refusal | undefined> {
    const { topology } = this.#core;
    const going = await untilWritten(this.#core, async () => {
      const present = topology.exchange(name);
      if (present === undefined) return undefined;
      if (present.state === "deleting") return present;
      if (ifUnused && this.#isUsed(name)) return refuse("exchange-in-use", { exchange: name });
      return topology.updateExchange(present, { state: "deleting" });
    });
    if (going === undefined || going.kind === "refusal") return going;
    await this.finishDeletion(going);
    return undefined;
  }

  #isUsed(name: string): boolean {
    const { topology } = this.#core;
    return topology.bindingsFrom(name).some((binding) => {
      const queue = topology.queue(binding.queue);
      return queue?.state === "ready" && hasOpen(binding, queue);
    });
  }

  /** From `deleting` to gone. Every step may be run again by whoever leads after a crash. */
  async finishDeletion(exchange: Exchange): Promise<void> {
    const { topology, fleet } = this.#core;
    // Nobody publishes to it any more when the intervals end: whoever knows that they are closing knows of this as well.
    await this.#bindings.closeAll(exchange);
    await untilWritten(this.#core, async () => {
      const present = topology.exchange(exchange.name);
      return present?.id === exchange.id ? topology.removeExchange(present) : "removed";
    });
    await fleet.barrier(topology.revision);
  }
}

/** RabbitMQ's order of comparison: type, durable, auto_delete, internal, arguments. */
function difference(spec: ExchangeSpec, present: Exchange): Refusal | undefined {
  const pairs: readonly (readonly [string, string | boolean, string | boolean])[] = [
    ["type", spec.kind, present.kind],
    ["durable", spec.durable, present.durable],
    ["auto_delete", spec.autoDelete, present.autoDelete],
    ["internal", spec.internal, present.internal],
    ["arguments", spec.arguments, present.arguments],
  ];
  for (const [argument, wanted, current] of pairs) {
    if (wanted !== current)
      return refuse("inequivalent-exchange", {
        exchange: spec.name,
        argument,
        wanted: String(wanted),
        present: String(current),
      });
  }
  return undefined;
}
