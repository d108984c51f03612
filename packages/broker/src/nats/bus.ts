/**
 * The Bus on JetStream: composes the parts of this folder.
 *
 * Responsibilities: opening (fails closed), and which part is told what when a connection goes and comes.
 * Used by: ground and open-accounts, core (through the port). Separate because the parts know nothing of each other.
 *
 * Publishes have a connection of their own; deliveries, settlements and API requests share the other, because a pull
 * after a settlement must not overtake it, and because deliveries that pile up may cost that connection (design §6).
 */
import type { Permit } from "@amqp/topology";
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
} from "../core/bus.ts";
import type { Properties } from "../core/message.ts";
import { untilAbreast } from "./abreast.ts";
import type { BusOptions } from "./bus-options.ts";
import { Cursors } from "./cursors.ts";
import { Elections } from "./elections.ts";
import { Keeper, type Traffic } from "./keeper.ts";
import { Links, type LinkUse } from "./links.ts";
import { nextAbove } from "./log-look.ts";
import { LogReader } from "./log-reader.ts";
import { base64Length, HEADER_LIMIT, HEADER_OVERHEAD } from "./props-header.ts";
import { Publisher } from "./publisher.ts";
import { Pulls } from "./pulls.ts";
import { Requests } from "./requests.ts";
import { RoomWatch } from "./room-watch.ts";
import { Settlements } from "./settlements.ts";
import { storeEmpty } from "./store-empty.ts";
import { checkServer, openStream, readLogState, readRoom } from "./stream.ts";

const BUS_TIMEOUT_MS = 30_000;
/** Milliseconds, of a write and of a pull. */
const TIMEOUT_MS = 2_500;

/**
 * Opens the bus: checks the server, opens or makes the stream.
 * Throws `BootError` with one line that names the remedy.
 */
export async function openBus(options: BusOptions): Promise<JetStreamBus> {
  const bus = new JetStreamBus(options);
  try {
    await bus.open();
    return bus;
  } catch (error) {
    await bus.close();
    throw error;
  }
}

export class JetStreamBus implements Bus {
  readonly #options: BusOptions;
  readonly #links: Links;
  readonly #requests: Requests;
  readonly #answers: Requests;
  readonly #publisher: Publisher;
  readonly #pulls: Pulls;
  readonly #settlements: Settlements;
  readonly #cursors: Cursors;
  readonly #room: RoomWatch;
  readonly #elections: Elections;
  readonly #traffic: Traffic;
  readonly #keeper: Keeper;
  readonly #reader: LogReader;
  #isCopied: boolean = false;

  /** Use {@link openBus}: this one has not looked at the server yet. */
  constructor(options: BusOptions) {
    this.#options = options;
    const { stream, log, listener } = options;
    const { busTimeout: timeout = BUS_TIMEOUT_MS, inboxPrefix = "_INBOX" } = options;
    const toldOfLinks = {
      away: () => listener.away(),
      back: (restarted: boolean) => listener.back(restarted),
      down: (use: LinkUse) => this.#down(use),
      up: (use: LinkUse) => this.#up(use),
      denied: (use: LinkUse, subject: string) => this.#denied(use, subject),
    };
    this.#links = new Links(options, toldOfLinks, log);
    const { publishing, delivering, api } = this.#links;
    delivering.wire.stands = () => listener.stands?.() ?? true;
    const requesting = {
      domain: options.domain,
      writeTimeout: options.writeTimeout ?? TIMEOUT_MS,
      readTimeout: timeout,
    };
    this.#requests = new Requests(api, requesting);
    // After the settlements, in their order, whoever makes the other requests.
    this.#answers = api === delivering ? this.#requests : new Requests(delivering, requesting);
    this.#room = new RoomWatch({
      read: () => readRoom(this.#requests, stream),
      full: (full) => listener.full(full),
      log,
    });
    this.#publisher = new Publisher({
      windowOctets: options.unconfirmed,
      link: publishing,
      listener: {
        room: () => listener.room(),
        stalled: (stalled) => listener.stalled?.(stalled),
        full: (octets) => this.#room.refused(octets),
      },
      inboxPrefix,
      timeout,
      log,
    });
    const gone = async (queue: string): Promise<boolean> => (await this.#cursors.state(queue)) === undefined;
    this.#settlements = new Settlements({ link: delivering, requests: this.#answers, stream, timeout, gone });
    this.#pulls = new Pulls({
      link: delivering,
      log,
      inboxPrefix,
      expires: options.pullExpires ?? TIMEOUT_MS,
      nextSubject: (queue) => this.#requests.subject(`CONSUMER.MSG.NEXT.${stream}.${queue}`),
      gone,
    });
    const isClustered = (): boolean => this.isClustered;
    this.#cursors = new Cursors(this.#requests, options, this, isClustered);
    this.#traffic = options.traffic ?? { seen: false };
    const { root } = options;
    const keeping = { requests: this.#requests, stream, root, traffic: this.#traffic, isClustered, log };
    this.#keeper = new Keeper(keeping);
    this.#reader = new LogReader(() => readLogState(this.#requests, stream));
    this.#elections = new Elections({
      link: api,
      stream,
      elected: (queue) => listener.moved?.(queue),
      logElected: () => this.#publisher.elected(),
    });
  }

  /** The boot checks; part of {@link openBus}. */
  async open(): Promise<void> {
    const { delivering, stream, root, replicas, maxBytes, log } = this.#options;
    await checkServer(delivering, this.#requests, log);
    this.#isCopied = await openStream(this.#requests, { stream, root, replicas, maxBytes }, log);
    await this.#keeper.open();
  }

  /** Takes every pull back and stops. What is in flight is not waited for; the connections stay the caller's. */
  async close(): Promise<void> {
    this.#keeper.close();
    this.#room.close();
    this.#elections.close();
    await this.#pulls.close();
    this.#publisher.close();
    this.#links.close();
  }

  get maxPayload(): number {
    return this.#links.publishing.maxPayload - HEADER_OVERHEAD;
  }

  encodedSize(propertiesLength: number): number {
    const octets = base64Length(propertiesLength);
    return octets + HEADER_OVERHEAD > HEADER_LIMIT ? Number.POSITIVE_INFINITY : octets;
  }

  get room(): boolean {
    return this.#publisher.room;
  }

  get present(): boolean {
    return this.#links.present;
  }

  get incarnation(): string {
    return this.#links.incarnation;
  }

  publish(subject: string, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void {
    this.#traffic.seen = true;
    this.#publisher.publish(subject, properties, body, sink, tag);
  }

  async store(subject: string, permit: Permit): Promise<PublishOutcome> {
    return await storeEmpty(this.#requests, subject, permit);
  }

  openPull(queue: string, sink: PullSink): PullLine {
    return this.#pulls.open(queue, sink);
  }

  forget(queue: string): void {
    this.#pulls.forget(queue);
  }

  settle(token: string, how: Settlement): void {
    this.#traffic.seen = true;
    this.#settlements.settle(token, how);
  }

  nakAbandoned(queue: string, sequence: number, deliverySequence: number): void {
    this.#settlements.abandoned(queue, sequence, deliverySequence, "nak");
  }

  ackAbandoned(queue: string, sequence: number, deliverySequence: number): void {
    this.#settlements.abandoned(queue, sequence, deliverySequence, "ack");
  }

  async settled(queue: string): Promise<boolean> {
    return await this.#settlements.settled(queue);
  }

  get isClustered(): boolean {
    // A leaf's servers are several elsewhere.
    return this.#isCopied || this.#links.delivering.isClustered;
  }

  async abreast(queue: string): Promise<void> {
    if (this.isClustered) await untilAbreast(this.#requests, this.#options.stream, queue);
  }

  async logState(age?: number): Promise<LogState> {
    return await this.#reader.state(age);
  }

  lastSequence(): Promise<number> {
    return this.#reader.last();
  }

  async createCursor(spec: CursorSpec, permit?: Permit): Promise<void> {
    await this.#cursors.create(spec, permit);
  }

  async updateCursor(spec: CursorSpec, options?: UpdateOptions): Promise<boolean> {
    return await this.#cursors.update(spec, options);
  }

  async deleteCursor(queue: string, permit?: Permit): Promise<boolean> {
    const wasThere = await this.#cursors.delete(queue, permit);
    this.#pulls.forget(queue);
    return wasThere;
  }

  async cursorState(queue: string): Promise<CursorState | undefined> {
    return await this.#cursors.state(queue);
  }

  async cursors(): Promise<readonly CursorState[]> {
    return await this.#cursors.list();
  }

  async count(filters: readonly string[], above: number): Promise<number> {
    return await this.#cursors.count(filters, above);
  }

  async nextAbove(filter: string, above: number): Promise<number | undefined> {
    return await nextAbove(this.#requests, this.#options.stream, filter, above);
  }

  async collect(filters: readonly string[], above: number): Promise<number> {
    return await this.#cursors.collect(filters, above);
  }

  #down(use: LinkUse): void {
    if (use === "publishing") this.#publisher.down();
    if (use === "delivering") this.#pulls.down();
    this.#changed(use);
  }

  #up(use: LinkUse): void {
    if (use === "publishing") this.#publisher.up();
    else if (use === "delivering") this.#settlements.up();
    this.#changed(use);
    if (use === "delivering") this.#pulls.up();
  }

  #changed(use: LinkUse): void {
    if (use === "delivering") this.#answers.changed();
    if (use === "api" || this.#links.api === this.#links.delivering) this.#requests.changed();
  }

  #denied(use: LinkUse, subject: string): void {
    if (use === "publishing") this.#publisher.denied(subject);
    else this.#options.denied?.(subject);
  }
}
