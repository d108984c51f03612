/**
 * Waiting until every server of a cluster knows a cursor's filters.
 *
 * Responsibilities: who of the log's servers has applied a cursor's creation or change, and who need not be waited for.
 * Used by: cursors. Separate because it makes up for one fact: on an interest stream each server drops, and confirms, what
 * matches no filter that it knows, and a change of a cursor is answered by the cursor's leader alone. The servers apply such
 * changes in one order, but each in its own time; while they elect the leader who hands the changes out, one may be
 * seconds behind, and it may be the one who leads the log, or who will (measured: confirmed and gone).
 *
 * A server that takes part in a cursor's Raft group has created the cursor, and applied every change before. So a creation
 * is watched by the new cursor itself, and a change by another one, made after it for nothing else. That one is made on the
 * bucket's stream: the end of any consumer of the log makes each server look for messages that nobody wants any more, and
 * those that do not lead the consumers take too many for such (measured: whole stretches of a queue gone). On a cluster of more
 * servers than copies it does not see those that keep the log and not the bucket.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Fence } from "@amqp/topology";
import { nuid } from "@nats-io/nats-core";
import { PATIENCE } from "../core/patience.ts";
import { BusError, Code, hasCode } from "./errors.ts";
import type { Requests } from "./requests.ts";

const LONGEST_PAUSE_MS = 100;
/** A change is mostly everywhere within milliseconds: until then nobody is asked who is in touch. */
const SOON_MS = 20;
/** Servers say something every second; who was silent for longer gets nothing of the log either. */
const OUT_OF_TOUCH_MS = 3_000;
/** Nothing is held by a probe that stays behind. */
const IDLE: number = 30 * 1_000_000_000;

/** No AMQP name holds a `$`: no queue is called so, and no client can publish there. */
const PROBE = "$probe";

/** What JetStream says of a Raft group; absent where there is but one server. */
export interface Grouped {
  /** The server's clock. */
  readonly ts?: string;
  readonly cluster?: {
    readonly leader?: string;
    readonly leader_since?: string;
    readonly replicas?: readonly Member[];
  };
}

interface StreamInfo {
  readonly config: { readonly num_replicas: number };
}

/** As a group's leader sees it. */
interface Member {
  readonly name: string;
  readonly offline?: boolean;
  /** Nanoseconds since it was heard of; 0: never. */
  readonly active: number;
}

export interface InterestOptions {
  readonly requests: Requests;
  readonly stream: string;
  /** The bucket of the topology. */
  readonly bucket: string;
}

export class Interest {
  readonly #options: InterestOptions;
  readonly #fence: Fence = new Fence(() => this.#probe());

  constructor(options: InterestOptions) {
    this.#options = options;
  }

  /**
   * Resolves when every server of the log that is in touch knows every change of a cursor that was answered before this
   * call. All calls of one turn share a probe. Throws {@link BusError} where the log has no such leader for long.
   */
  known(): Promise<void> {
    return this.#fence.pass();
  }

  /** As {@link known}, of this cursor's creation. `info`: what it was answered with. */
  async created(cursor: string, info: Grouped): Promise<void> {
    await this.#everywhere(this.#options.stream, cursor, info, Date.now() + PATIENCE);
  }

  async #probe(): Promise<void> {
    const { requests, bucket } = this.#options;
    const stream = `KV_${bucket}`;
    // By itself a consumer that is not durable would be kept once.
    const { config: kept } = await requests.read<StreamInfo>(`STREAM.INFO.${stream}`);
    for (const end = Date.now() + PATIENCE; ; ) {
      const name = `${PROBE}-${nuid.next()}`;
      const config = {
        name,
        filter_subject: `$KV.${bucket}.${PROBE}`,
        deliver_policy: "new",
        ack_policy: "none",
        num_replicas: kept.num_replicas,
        mem_storage: true,
        inactive_threshold: IDLE,
      };
      // The very same again changes nothing, so it is as safe to ask twice as a read.
      const request = { stream_name: stream, config, action: "create" };
      const info = await requests.read<Grouped>(`CONSUMER.CREATE.${stream}.${name}`, request, end - Date.now());
      const isDone = await this.#everywhere(stream, name, info, end);
      // Nobody needs to wait for that; one that stays goes by itself.
      void requests.write(`CONSUMER.DELETE.${stream}.${name}`).catch(() => undefined);
      if (isDone) return;
    }
  }

  /** False: the cursor is gone. */
  async #everywhere(stream: string, cursor: string, created: Grouped, end: number): Promise<boolean> {
    const { requests } = this.#options;
    const began = performance.now();
    let info = created;
    for (let pause = 1; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const members = info.cluster?.replicas ?? [];
      const missing = members.filter(({ active }) => active === 0).map(({ name }) => name);
      if (missing.length === 0) return true;
      const waited = performance.now() - began;
      if (waited > SOON_MS && (await this.#areAway(missing, waited))) return true;
      if (Date.now() > end)
        throw new BusError("a server of the log does not learn of a cursor", { code: 0, timeout: true });
      await sleep(pause);
      try {
        info = await requests.read<Grouped>(`CONSUMER.INFO.${stream}.${cursor}`);
      } catch (error) {
        if (hasCode(error, Code.consumerNotFound)) return false;
        throw error;
      }
    }
  }

  /** Whether none of these servers leads the log, or is handed anything of it. `waited`: milliseconds, so far. */
  async #areAway(servers: readonly string[], waited: number): Promise<boolean> {
    const { requests, stream } = this.#options;
    const { ts = "", cluster } = await requests.read<Grouped>(`STREAM.INFO.${stream}`);
    if (cluster?.leader === undefined) return false;
    const led = Date.parse(ts) - Date.parse(cluster.leader_since ?? "");
    return servers.every((server) => {
      const member = cluster.replicas?.find(({ name }) => name === server);
      if (server === cluster.leader || member === undefined) return false;
      if (member.offline === true) return true;
      // A leader that has just been elected may not have heard of anybody yet.
      const silence = member.active > 0 ? member.active / 1_000_000 : Number.isNaN(led) ? waited : led;
      return silence > OUT_OF_TOUCH_MS;
    });
  }
}
