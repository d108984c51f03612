/**
 * The leader's verbs: every change of the topology, as one replica asks another for it.
 *
 * Responsibilities: the contract between lead (which forwards) and exchanges, queues and bindings (which do). What goes
 * in and out are plain values that survive JSON. Implemented by: changing.ts. Separate because it is a format on the bus:
 * replicas of different versions speak it to each other.
 */
import type { Refusal } from "../refusals.ts";
import type { BindingSpec, ExchangeSpec, QueueSpec } from "./verbs.ts";

/** Who asks: a connection of a replica. */
export interface Asker {
  readonly replica: string;
  readonly connection: string;
}

/** What a question is refused with, or done. */
export type Done = Refusal | undefined;

export interface Changes {
  /** Is somebody leading? Answered once it has reconciled. */
  ready(question: null): Promise<true>;
  declareExchange(spec: ExchangeSpec): Promise<Done>;
  deleteExchange(question: { readonly name: string; readonly ifUnused: boolean }): Promise<Done>;
  /** `made`: it was not there, so that nothing is in it. */
  declareQueue(question: {
    readonly asker: Asker;
    readonly spec: QueueSpec;
  }): Promise<Refusal | { readonly made: boolean }>;
  deleteQueue(question: {
    readonly asker: Asker;
    readonly name: string;
    readonly ifUnused: boolean;
    readonly ifEmpty: boolean;
  }): Promise<Refusal | { readonly messages: number }>;
  /** Deletes these exclusive queues of a connection that closed. */
  deleteOwned(question: { readonly asker: Asker; readonly names: readonly string[] }): Promise<Done>;
  /** The replica has a new id: what it owned under the old one is its own still, if it is there. */
  renamed(question: { readonly before: string; readonly after: string }): Promise<Done>;
  bind(question: {
    readonly asker: Asker;
    readonly bindings: readonly BindingSpec[];
  }): Promise<{ readonly done: number; readonly refusal?: Refusal }>;
  unbind(question: { readonly asker: Asker; readonly binding: BindingSpec }): Promise<Done>;
  /** The replica's first consumer of a queue, or an exclusive one, wants to come. */
  consume(question: { readonly asker: Asker; readonly queue: string; readonly exclusive: boolean }): Promise<Done>;
  /** Its last one of that life of the queue went. */
  consumed(question: { readonly replica: string; readonly queue: string; readonly queueId: number }): Promise<Done>;
  /** After a restart of the bus: what is stored up to there may have been delivered, whatever the bus counts. */
  doubt(question: { readonly queue: string; readonly upTo: number }): Promise<Done>;
  /** Puts back what nobody holds of this queue; `written`: the highest sequence that went to a client anywhere. */
  sweep(question: { readonly queue: string }): Promise<{ readonly written: number }>;
}
