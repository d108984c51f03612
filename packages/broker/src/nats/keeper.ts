/**
 * A message that always stands in the log, so that the log is never empty.
 *
 * Responsibilities: the cursor `$keeper` with one message that nobody wants, and a new one for it where there is traffic.
 * Used by: bus.ts. Separate because it makes up for one fault of the bus: while a file-backed interest stream becomes empty,
 * the walk that ends a consumer or changes its filters (design §5, LEAK) can take a message that has just been stored and
 * confirmed for one that nobody wants, and remove it (measured on the client alone: 114 of 31,927 on a busy machine; none of
 * 40,603 with a message that stands).
 *
 * On one server the one that stands is replaced now and then, since the bus keeps what lies between it and the log's end as
 * gaps (measured over 1.6 million messages: 28 MiB, else 124). Every replica does so, each with a message of its own before it
 * takes the oldest away: there is always one. On a cluster it stays: where the log's first sequence moves, servers that come
 * back lose some of what queues hold (docs/cluster.md).
 */
import type { Log } from "../core/log.ts";
import { type AckFacts, readAckSubject } from "./ack-subject.ts";
import { BusError, Code } from "./errors.ts";
import type { Requests } from "./requests.ts";
import { toBootError } from "./stream.ts";

const SECOND = 1_000_000_000;
/** No AMQP name holds a `$`: no queue is called so, and no client can publish there. */
const KEEPER = "$keeper";
const EVERY_MS = 1_000;
const TIMEOUT_MS = 2_500;

/** Whether anything was published or settled of late; shared by every connection of a process to one stream. */
export interface Traffic {
  seen: boolean;
}

export interface KeeperOptions {
  readonly requests: Requests;
  readonly stream: string;
  /** The first word of the log's subjects. */
  readonly root: string;
  readonly traffic: Traffic;
  /** Whether several servers keep the log. */
  readonly isClustered: () => boolean;
  readonly log: Log;
}

interface ConsumerInfo {
  readonly num_pending: number;
  readonly num_ack_pending: number;
}

export class Keeper {
  readonly #options: KeeperOptions;
  readonly #subject: string;
  #timer: NodeJS.Timeout | undefined;
  #closed: boolean = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#subject = `${options.root}.${KEEPER}`;
  }

  /** From here on the log is not empty. Throws {@link BootError}. */
  async open(): Promise<void> {
    try {
      await this.#create();
      await this.#see(true);
    } catch (error) {
      // A log without room is not empty; and the servers of a cluster may be about to elect a leader.
      const isPassing =
        error instanceof BusError && error.code !== Code.forbidden && (!error.timeout || this.#options.isClustered());
      if (!isPassing) throw toBootError(this.#subject, error);
    }
    // In a cluster its leader may not have known the cursor yet, and kept nothing.
    this.#options.traffic.seen = true;
    this.#later();
  }

  /** The message stays, for whoever comes next. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #later(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#tick().finally(() => this.#later()), EVERY_MS);
    this.#timer.unref();
  }

  async #tick(): Promise<void> {
    const { traffic, log } = this.#options;
    if (!traffic.seen) return;
    traffic.seen = false;
    try {
      await this.#see(false);
    } catch (error) {
      // The old one stands, or the cursor is gone: it is made again, and a message for it.
      log.debug({ err: error }, "the log's standing message was not seen to");
      traffic.seen = true;
      await this.#create().catch(() => undefined);
    }
  }

  async #create(): Promise<void> {
    const { requests, stream } = this.#options;
    const config = {
      name: KEEPER,
      durable_name: KEEPER,
      filter_subject: this.#subject,
      deliver_policy: "new",
      ack_policy: "explicit",
      ack_wait: 300 * SECOND,
      max_ack_pending: -1,
    };
    // The very same again changes nothing, so it is as safe to ask twice as a read.
    await requests.read(`CONSUMER.CREATE.${stream}.${KEEPER}`, { stream_name: stream, config });
  }

  #see(all: boolean): Promise<void> {
    return this.#options.isClustered() ? this.#ensure() : this.#renew(all);
  }

  /** Leaves the one that stands, or makes one. Where two replicas do so at once, two stand. */
  async #ensure(): Promise<void> {
    const { requests, stream } = this.#options;
    const info = await requests.read<ConsumerInfo>(`CONSUMER.INFO.${stream}.${KEEPER}`, undefined, TIMEOUT_MS);
    if (info.num_pending + info.num_ack_pending === 0) await requests.publish(this.#subject, TIMEOUT_MS);
  }

  /** `all`: takes everything older away, else one of them, as one is added. */
  async #renew(all: boolean): Promise<void> {
    const { requests } = this.#options;
    const stored = await requests.publish(this.#subject, TIMEOUT_MS);
    const facts: AckFacts = { attempts: 0, sequence: 0, deliverySequence: 0, time: 0 };
    do {
      const message = await requests.next(this.#options.stream, KEEPER, TIMEOUT_MS);
      if (message === undefined || !readAckSubject(message.reply ?? "", facts)) return;
      // Another replica's younger one, or this one's own: it has to stand.
      const isOlder = facts.sequence < stored;
      message.respond(isOlder ? "+ACK" : "-NAK");
      if (!isOlder) return;
    } while (all);
  }
}
