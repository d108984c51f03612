/**
 * A namespace: a part of the bus that holds one tenant's everything, and out of which nothing can be spelled.
 *
 * Responsibilities: the three spellings of an organisation (subjects, cursor names, bucket keys), and the Bus seen from
 * inside: the same log, cursors under the tenant's own names. Used by: open (a tenant's bus), jwt, tokens, and what
 * lists cursors. Separate because this is the whole tenant boundary: `@` occurs in no exchange and no queue (HIP §2),
 * so the flat namespace and no other organisation can name what lies inside, and a broker inside is built from the
 * translator's functions with another root.
 */
import type { Permit } from "@amqp/topology";
import { checkName, ROOT } from "@amqp/translator";
import type {
  Bus,
  CursorSpec,
  CursorState,
  LogState,
  PublishOutcome,
  PublishSink,
  PullLine,
  PullSink,
  Settlement,
  UpdateOptions,
} from "./bus.ts";
import type { Properties } from "./message.ts";

/** What an organisation may be called: one word of a subject, of a consumer's name and of a bucket's key. */
const ORG = /^[A-Za-z0-9_-]{1,63}$/;

/** A tenant's place on the bus. */
export interface Namespace {
  readonly org: string;
  /** The first words of its subjects: `amqp.@<org>`. */
  readonly root: string;
  /** What stands before its queues' names in cursor names: `<org>@`. */
  readonly cursors: string;
  /** What stands before its keys in the bucket: `o.<org>.`. */
  readonly keys: string;
}

/** The namespace of an organisation; undefined for what cannot be one's name, of whatever type it is. */
export function toNamespace(org: unknown): Namespace | undefined {
  if (typeof org !== "string" || !ORG.test(org)) return undefined;
  return { org, root: `${ROOT}.@${org}`, cursors: `${org}@`, keys: `o.${org}.` };
}

/** The cursors of this bus that can be queues of it: to a flat one, those of every namespace are somebody else's. */
export async function ownCursors(bus: Bus): Promise<readonly CursorState[]> {
  return (await bus.cursors()).filter(({ queue }) => checkName("queue", queue) === undefined);
}

/** The bus as a namespace sees it. The namespace's filters and subjects come spelled with its root. */
export class NamespacedBus implements Bus {
  readonly #bus: Bus;
  readonly #cursors: string;

  constructor(bus: Bus, { cursors }: Namespace) {
    this.#bus = bus;
    this.#cursors = cursors;
  }

  get maxPayload(): number {
    return this.#bus.maxPayload;
  }

  get room(): boolean {
    return this.#bus.room;
  }

  get present(): boolean {
    return this.#bus.present;
  }

  get incarnation(): string {
    return this.#bus.incarnation;
  }

  encodedSize(propertiesLength: number): number {
    return this.#bus.encodedSize(propertiesLength);
  }

  publish(subject: string, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void {
    this.#bus.publish(subject, properties, body, sink, tag);
  }

  store(subject: string, permit: Permit): Promise<PublishOutcome> {
    return this.#bus.store(subject, permit);
  }

  openPull(queue: string, sink: PullSink): PullLine {
    return this.#bus.openPull(this.#cursors + queue, sink);
  }

  forget(queue: string): void {
    this.#bus.forget(this.#cursors + queue);
  }

  settle(token: string, how: Settlement): void {
    this.#bus.settle(token, how);
  }

  nakAbandoned(queue: string, sequence: number, deliverySequence: number): void {
    this.#bus.nakAbandoned(this.#cursors + queue, sequence, deliverySequence);
  }

  ackAbandoned(queue: string, sequence: number, deliverySequence: number): void {
    this.#bus.ackAbandoned(this.#cursors + queue, sequence, deliverySequence);
  }

  settled(queue: string): Promise<boolean> {
    return this.#bus.settled(this.#cursors + queue);
  }

  get isClustered(): boolean {
    return this.#bus.isClustered;
  }

  abreast(queue: string): Promise<void> {
    return this.#bus.abreast(this.#cursors + queue);
  }

  logState(age?: number): Promise<LogState> {
    return this.#bus.logState(age);
  }

  lastSequence(): Promise<number> {
    return this.#bus.lastSequence();
  }

  createCursor(spec: CursorSpec, permit?: Permit): Promise<void> {
    return this.#bus.createCursor(this.#outer(spec), permit);
  }

  updateCursor(spec: CursorSpec, options?: UpdateOptions): Promise<boolean> {
    return this.#bus.updateCursor(this.#outer(spec), options);
  }

  deleteCursor(queue: string, permit?: Permit): Promise<boolean> {
    return this.#bus.deleteCursor(this.#cursors + queue, permit);
  }

  async cursorState(queue: string): Promise<CursorState | undefined> {
    const state = await this.#bus.cursorState(this.#cursors + queue);
    return state === undefined ? undefined : { ...state, queue };
  }

  async cursors(): Promise<readonly CursorState[]> {
    const prefix = this.#cursors;
    const own = (await this.#bus.cursors()).filter(({ queue }) => queue.startsWith(prefix));
    return own.map((state) => ({ ...state, queue: state.queue.slice(prefix.length) }));
  }

  count(filters: readonly string[], above: number): Promise<number> {
    return this.#bus.count(filters, above);
  }

  nextAbove(filter: string, above: number): Promise<number | undefined> {
    return this.#bus.nextAbove(filter, above);
  }

  collect(filters: readonly string[], above: number): Promise<number> {
    return this.#bus.collect(filters, above);
  }

  #outer(spec: CursorSpec): CursorSpec {
    return { ...spec, queue: this.#cursors + spec.queue };
  }
}
