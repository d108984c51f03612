/**
 * Cursors: the durable consumers that queues are, and the throwaway ones that count and collect.
 *
 * Responsibilities: CursorSpec to consumer configuration and back, through the JSON API with exact actions.
 * Used by: bus.ts. Separate because topology work is requests and promises, the data path is neither.
 */

import type { Permit } from "@amqp/topology";
import { nuid } from "@nats-io/nats-core";
import type { Bus, CursorSpec, CursorState, UpdateOptions } from "../core/bus.ts";
import { BusError, Code, hasCode } from "./errors.ts";
import { type Grouped, Interest } from "./interest.ts";
import type { Requests } from "./requests.ts";

const SECOND = 1_000_000_000;
/** HIP §2. */
const ACK_WAIT: number = 300 * SECOND;
const QUEUE_ID = "amqp-queue-id";
const REVISION = "amqp-revision";
/** No AMQP name may hold a `$`, so no queue can be called what a throwaway cursor is. */
const COUNTING = "$count-";
const COLLECTING = "$collect-";
const COLLECT_BATCH = 500;
/** States asked for at once. */
const AT_ONCE = 32;
/** How long a list waits for one that nobody leads. */
const SILENT_MS = 2_500;

interface ConsumerInfo extends Grouped {
  readonly name: string;
  readonly num_pending: number;
  readonly num_ack_pending: number;
  readonly ack_floor: { readonly stream_seq: number };
  readonly delivered: { readonly stream_seq: number; readonly consumer_seq: number };
  readonly config: {
    readonly filter_subject?: string;
    readonly filter_subjects?: readonly string[];
    readonly metadata?: Readonly<Record<string, string>>;
  };
}

interface ConsumerPage {
  readonly total: number;
  readonly consumers: readonly ConsumerInfo[] | null;
}

/** Of a cursor that nobody leads. */
const NOTHING: Omit<CursorState, "queue"> = {
  filters: [],
  revision: 0,
  queueId: 0,
  pending: 0,
  ackPending: 0,
  ackFloor: 0,
  delivered: 0,
  deliveredSequence: 0,
  isSilent: true,
};

interface NamesPage {
  readonly total: number;
  readonly consumers: readonly string[] | null;
}

/** The part of the data path that collecting needs. */
export type CollectingBus = Pick<Bus, "openPull" | "settle" | "settled" | "deleteCursor">;

export class Cursors {
  readonly #requests: Requests;
  readonly #stream: string;
  readonly #bus: CollectingBus;
  readonly #interest: Interest;
  readonly #isClustered: () => boolean;

  constructor(
    requests: Requests,
    { stream, bucket = "amqp" }: { readonly stream: string; readonly bucket?: string },
    bus: CollectingBus,
    isClustered: () => boolean,
  ) {
    this.#interest = new Interest({ requests, stream, bucket });
    this.#isClustered = isClustered;
    this.#requests = requests;
    this.#stream = stream;
    this.#bus = bus;
  }

  async create(spec: CursorSpec, permit?: Permit): Promise<void> {
    const request = { stream_name: this.#stream, config: toConfig(spec, false), action: "create" };
    const info = await this.#requests.write<ConsumerInfo>(this.#verb("CREATE", spec.queue), request, permit);
    if (this.#isClustered()) await this.#interest.created(spec.queue, info);
  }

  async update(spec: CursorSpec, { headersOnly = false, permit }: UpdateOptions = {}): Promise<boolean> {
    // Create-or-update would bring a deleted queue back (design §4).
    const request = { stream_name: this.#stream, config: toConfig(spec, headersOnly), action: "update" };
    try {
      await this.#requests.write(this.#verb("CREATE", spec.queue), request, permit);
      if (this.#isClustered() && !headersOnly) await this.#interest.known();
      return true;
    } catch (error) {
      if (hasCode(error, Code.consumerDoesNotExist, Code.consumerNotFound)) return false;
      throw error;
    }
  }

  async delete(queue: string, permit?: Permit): Promise<boolean> {
    try {
      await this.#requests.write(this.#verb("DELETE", queue), undefined, permit);
      return true;
    } catch (error) {
      if (hasCode(error, Code.consumerNotFound)) return false;
      throw error;
    }
  }

  async state(queue: string): Promise<CursorState | undefined> {
    try {
      return toState(await this.#requests.read<ConsumerInfo>(this.#verb("INFO", queue)));
    } catch (error) {
      if (hasCode(error, Code.consumerNotFound)) return undefined;
      throw error;
    }
  }

  /**
   * Every queue's cursor. In a cluster each is asked for by itself: a list lacks those that nobody leads for the moment,
   * and waits four seconds for them.
   */
  async list(): Promise<readonly CursorState[]> {
    if (!this.#isClustered()) return await this.#listAtOnce();
    const names = (await this.#names()).filter((name) => !name.startsWith("$"));
    const states: CursorState[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let name = names[next++]; name !== undefined; name = names[next++]) {
        const state = await this.#stateOrSilent(name);
        if (state !== undefined && (state.isSilent === true || state.queueId > 0)) states.push(state);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return states;
  }

  async #stateOrSilent(name: string): Promise<CursorState | undefined> {
    try {
      return toState(await this.#requests.read<ConsumerInfo>(this.#verb("INFO", name), undefined, SILENT_MS));
    } catch (error) {
      if (hasCode(error, Code.consumerNotFound)) return undefined;
      const isUnled = hasCode(error, Code.noResponders, Code.clusterNotAvailable, Code.clusterNoLeader);
      if (!isUnled && !(error instanceof BusError && error.timeout)) throw error;
      return { ...NOTHING, queue: name };
    }
  }

  async #names(): Promise<readonly string[]> {
    const names: string[] = [];
    for (;;) {
      const offset = names.length;
      const page = await this.#requests.read<NamesPage>(`CONSUMER.NAMES.${this.#stream}`, { offset });
      names.push(...(page.consumers ?? []));
      if (names.length === offset || names.length >= page.total) return names;
    }
  }

  async #listAtOnce(): Promise<readonly CursorState[]> {
    const states: CursorState[] = [];
    let offset = 0;
    for (;;) {
      const page = await this.#requests.read<ConsumerPage>(`CONSUMER.LIST.${this.#stream}`, { offset });
      const consumers = page.consumers ?? [];
      for (const info of consumers) if (info.config.metadata?.[QUEUE_ID] !== undefined) states.push(toState(info));
      offset += consumers.length;
      if (consumers.length === 0 || offset >= page.total) return states;
    }
  }

  async count(filters: readonly string[], above: number): Promise<number> {
    if (filters.length === 0) return 0;
    const name = COUNTING + nuid.next();
    const info = await this.#throwaway(name, filters, above, { ack_policy: "none" });
    // One that stays behind goes by itself.
    await this.delete(name).catch(() => false);
    return info.num_pending;
  }

  async collect(filters: readonly string[], above: number): Promise<number> {
    if (filters.length === 0) return 0;
    const name = COLLECTING + nuid.next();
    await this.#throwaway(name, filters, above, {
      ack_policy: "explicit",
      ack_wait: ACK_WAIT,
      max_ack_pending: -1,
      headers_only: true,
    });
    try {
      return await this.#drain(name);
    } finally {
      await this.#bus.deleteCursor(name).catch(() => false);
    }
  }

  async #throwaway(name: string, filters: readonly string[], above: number, more: object): Promise<ConsumerInfo> {
    const request = {
      stream_name: this.#stream,
      config: {
        name,
        ...more,
        ...toFilters(filters),
        deliver_policy: "by_start_sequence",
        opt_start_seq: above + 1,
        replay_policy: "instant",
        mem_storage: true,
        inactive_threshold: 30 * SECOND,
      },
      action: "create",
    };
    // As safe to ask again as a read: the very same one may be there already, and one made unheard goes by itself.
    return await this.#requests.read<ConsumerInfo>(this.#verb("CREATE", name), request);
  }

  /** Pulls and acknowledges until the cursor is empty. */
  async #drain(name: string): Promise<number> {
    let taken = 0;
    await new Promise<void>((resolve) => {
      let open = COLLECT_BATCH;
      const line = this.#bus.openPull(name, {
        message: (message) => {
          this.#bus.settle(message.token, "ack");
          taken++;
          if (--open === 0) more();
        },
        ended: (missing, why) => {
          open -= missing;
          if (why === "empty" || why === "gone") void line.takeBack().then(resolve);
          else if (open <= 0) more();
        },
      });
      const more = (): void => {
        open = COLLECT_BATCH;
        line.ask(COLLECT_BATCH, false);
      };
      more();
    });
    await this.#bus.settled(name);
    return taken;
  }

  #verb(verb: string, consumer: string): string {
    return `CONSUMER.${verb}.${this.#stream}.${consumer}`;
  }
}

function toFilters(filters: readonly string[]): object {
  // The plural path is slower (design §3).
  return filters.length === 1 ? { filter_subject: filters[0] } : { filter_subjects: filters };
}

function toConfig(spec: CursorSpec, headersOnly: boolean): object {
  if (spec.filters.length === 0) throw new Error(`queue ${spec.queue}: no filter would mean the whole log`);
  return {
    name: spec.queue,
    durable_name: spec.queue,
    ack_policy: "explicit",
    ack_wait: ACK_WAIT,
    deliver_policy: "new",
    replay_policy: "instant",
    max_ack_pending: -1,
    max_deliver: -1,
    ...toFilters(spec.filters),
    ...(headersOnly ? { headers_only: true } : {}),
    metadata: { [QUEUE_ID]: String(spec.queueId), [REVISION]: String(spec.revision) },
  };
}

function toState(info: ConsumerInfo): CursorState {
  const { config } = info;
  return {
    queue: info.name,
    filters: config.filter_subjects ?? (config.filter_subject === undefined ? [] : [config.filter_subject]),
    revision: Number(config.metadata?.[REVISION] ?? 0),
    queueId: Number(config.metadata?.[QUEUE_ID] ?? 0),
    pending: info.num_pending,
    ackPending: info.num_ack_pending,
    ackFloor: info.ack_floor.stream_seq,
    delivered: info.delivered.stream_seq,
    deliveredSequence: info.delivered.consumer_seq,
  };
}
