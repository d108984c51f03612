/**
 * The watch of the bucket: its log in order, by a push consumer that is made anew whenever it may have missed something.
 *
 * Used by: nats.ts. Separate because it is a small machine of its own. The client's ordered consumer is not used: after a
 * restart of the server it notices the loss only by missed heartbeats (ten seconds, later a minute), and it resumes
 * behind the last entry it saw, so that a deletion whose marker has expired meanwhile would never be learnt. Here every
 * new consumer replays the latest entry of each key, and what the replay lacks is told as deleted.
 *
 * A bucket keeps one revision of a key. What is written again before it was sent is skipped, and its successor comes
 * later than entries that are younger than itself; what expired or was purged never comes. So to have seen a revision is
 * not to have been told all before it. The watch is SETTLED while revisions come without a gap; a gap (a replay is one)
 * unsettles it until the stream's leader says that nothing is left behind what was told, or until everything that was
 * in the stream after the last gap has been told.
 *
 * States: unsettled ⇄ settled, unsettled → unsettled (a new consumer), either → ended (stopped, or lost).
 */
import { AckPolicy, DeliverPolicy, type JetStreamManager, ReplayPolicy } from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection, nanos, nuid, type Subscription } from "@nats-io/nats-core";
import type { BucketListener, Watch } from "../bucket.ts";
import { latestRevision } from "../fence.ts";
import { ERROR, isGone, positionOf } from "./api.ts";
import { Waiters } from "./waiters.ts";

/** What a watch needs to know of its bucket. */
export interface Watched {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly stream: string;
  /** `$KV.<bucket>.` */
  readonly prefix: string;
  lastRevision(): Promise<number>;
  /** Whether the stream still holds anything above this revision, asked of its leader. */
  holdsAbove(revision: number): Promise<boolean>;
}

const HEARTBEAT = 1_000;
/** Silence after which the consumer counts as gone, milliseconds. */
const SILENCE = 3_500;
const FIRST_PAUSE = 5;
const LAST_PAUSE = 50;
const LAST_RETRY = 1_000;

/** A running watch of every key. */
export class BucketWatch implements Watch {
  readonly #bucket: Watched;
  readonly #listener: BucketListener;
  #state: "unsettled" | "settled" | "ended" = "unsettled";
  /** The live keys as the listener was told, with their revisions. */
  readonly #told = new Map<string, number>();
  /** The keys of this consumer's replay, until it has settled. */
  #replayed: Set<string> | undefined;
  readonly #waiters = new Waiters();
  /** The revision of the latest entry of this consumer. */
  #position = 0;
  #gaps = 0;
  #generation = 0;
  #inbox: Subscription | undefined;
  #consumer = "";
  /** How many deliveries of this consumer arrived. */
  #delivered = 0;
  #heard = 0;
  #probing: boolean = false;
  #clock: NodeJS.Timeout | undefined;

  constructor(bucket: Watched, listener: BucketListener) {
    this.#bucket = bucket;
    this.#listener = listener;
  }

  /** Resolves when the initial replay has been told. */
  async start(): Promise<this> {
    try {
      await this.#open(this.#generation);
      await this.#wait(0);
    } catch (error) {
      await this.stop();
      throw error;
    }
    void this.#followConnection();
    this.#clock = setInterval(() => {
      if (performance.now() - this.#heard > SILENCE) this.#reopen();
    }, HEARTBEAT);
    this.#clock.unref();
    return this;
  }

  caughtUp(revision: number): Promise<void> {
    if (this.#state === "ended") return Promise.reject(new Error("the watch of the bucket has ended"));
    return revision <= this.#waiters.reached ? Promise.resolve() : this.#wait(revision);
  }

  async stop(): Promise<void> {
    if (this.#state === "ended") return;
    const { connection, manager, stream } = this.#bucket;
    const consumer = this.#consumer;
    this.#end(new Error("the watch of the bucket was stopped"));
    if (!connection.isClosed()) await manager.consumers.delete(stream, consumer).catch(() => {});
  }

  #wait(revision: number): Promise<void> {
    const told = this.#waiters.wait(revision);
    void this.#probe(FIRST_PAUSE);
    return told;
  }

  /** Makes this generation's consumer, which replays the latest entry of every key and goes on from there. */
  async #open(generation: number): Promise<void> {
    const { connection, manager, stream, prefix } = this.#bucket;
    const { reached } = this.#waiters;
    const last = await latestRevision(() => this.#bucket.lastRevision(), reached);
    if (generation !== this.#generation) return;
    // What was answered from revisions that no longer exist cannot be taken back: fail closed (HIP §5).
    if (last < reached) throw new BucketGone(`the bucket went back from revision ${reached} to ${last}`);
    const inbox = createInbox();
    this.#delivered = 0;
    this.#position = 0;
    this.#replayed = new Set();
    this.#consumer = `amqp-watch-${nuid.next()}`;
    this.#heard = performance.now();
    this.#inbox = connection.subscribe(inbox, {
      callback: (error, message) => {
        if (error === null && generation === this.#generation) this.#take(message);
      },
    });
    await manager.consumers.add(stream, {
      name: this.#consumer,
      deliver_subject: inbox,
      deliver_policy: DeliverPolicy.LastPerSubject,
      ack_policy: AckPolicy.None,
      replay_policy: ReplayPolicy.Instant,
      filter_subject: `${prefix}>`,
      flow_control: true,
      idle_heartbeat: nanos(HEARTBEAT),
      mem_storage: true,
      num_replicas: 1,
    });
  }

  /** What this consumer sent may not be all: another one replays. Goes on until there is one, or the bucket is gone. */
  #reopen(): void {
    if (this.#state === "ended") return;
    this.#state = "unsettled";
    this.#inbox?.unsubscribe();
    void this.#retry(++this.#generation);
  }

  async #retry(generation: number): Promise<void> {
    for (let pause = FIRST_PAUSE; generation === this.#generation; pause = Math.min(pause * 2, LAST_RETRY)) {
      try {
        await this.#open(generation);
        return await this.#probe(0);
      } catch (error) {
        if (generation !== this.#generation) return;
        this.#inbox?.unsubscribe();
        if (error instanceof BucketGone) this.#lose(error);
        else if (codeOf(error) === ERROR.streamNotFound) this.#lose(new BucketGone("the bucket's stream was deleted"));
        else await elapsed(pause);
      }
    }
  }

  #take(message: Msg): void {
    this.#heard = performance.now();
    if ((message.headers?.code ?? 0) !== 0) {
      this.#control(message);
      return;
    }
    const { revision, delivery } = positionOf(message);
    if (delivery !== this.#delivered + 1) {
      this.#reopen();
      return;
    }
    this.#delivered = delivery;
    if (revision !== this.#position + 1) {
      this.#gaps++;
      this.#state = "unsettled";
    }
    this.#position = revision;
    this.#tell(message, revision);
    if (this.#state === "settled") this.#waiters.reach(revision);
    else void this.#probe(0);
  }

  /** A heartbeat or a request of the flow control: answered, and compared with what arrived. */
  #control(message: Msg): void {
    message.respond();
    const stalled = message.headers?.get("Nats-Consumer-Stalled");
    if (stalled) this.#bucket.connection.publish(stalled);
    const last = message.headers?.get("Nats-Last-Consumer");
    if (last && Number(last) !== this.#delivered) this.#reopen();
  }

  #tell(message: Msg, revision: number): void {
    const key = message.subject.slice(this.#bucket.prefix.length);
    this.#replayed?.add(key);
    if (revision <= (this.#told.get(key) ?? 0)) return;
    const gone = isGone(message.headers);
    if (gone) this.#told.delete(key);
    else this.#told.set(key, revision);
    this.#listener.entry({ key, value: gone ? undefined : message.data, revision });
  }

  /** Asks the stream's leader, while somebody waits or the watch is unsettled, what is left to come. */
  async #probe(first: number): Promise<void> {
    if (this.#probing) return;
    this.#probing = true;
    let pause = first;
    do {
      if (pause > 0) await elapsed(pause);
      const position = this.#position;
      await this.#ask().catch((error: unknown) => {
        const code = codeOf(error);
        if (code === ERROR.consumerNotFound || code === ERROR.streamNotFound) this.#reopen();
      });
      pause = position === this.#position ? Math.min(Math.max(pause * 2, FIRST_PAUSE), LAST_PAUSE) : FIRST_PAUSE;
    } while (this.#state === "unsettled" || (this.#state === "settled" && !this.#waiters.empty));
    this.#probing = false;
  }

  async #ask(): Promise<void> {
    if (this.#state === "ended" || (this.#state === "settled" && this.#waiters.empty)) return;
    const generation = this.#generation;
    const gaps = this.#gaps;
    const last = await this.#bucket.lastRevision();
    const position = this.#position;
    const isSame = (): boolean => generation === this.#generation && this.#state !== "ended";
    if (!isSame()) return;
    // Nothing was skipped since the question, and what was there at the question has been told.
    if (this.#replayed === undefined && gaps === this.#gaps && position >= last) {
      this.#settle(position);
    } else if (!(await this.#bucket.holdsAbove(position)) && isSame() && position === this.#position) {
      // Nothing is left behind what was told: the latest revision of every key has been.
      this.#settle(Math.max(position, last));
    } else if (isSame() && position === this.#position) {
      // Something is left and does not come: is the consumer still there?
      await this.#bucket.manager.consumers.info(this.#bucket.stream, this.#consumer);
    }
  }

  #settle(revision: number): void {
    this.#state = "settled";
    this.#position = revision;
    const replayed = this.#replayed;
    this.#replayed = undefined;
    if (replayed !== undefined) {
      for (const key of this.#told.keys()) {
        if (replayed.has(key)) continue;
        this.#told.delete(key);
        this.#listener.entry({ key, value: undefined, revision });
      }
    }
    this.#waiters.reach(revision);
  }

  async #followConnection(): Promise<void> {
    const { connection } = this.#bucket;
    void connection.closed().then((error) => {
      this.#lose(error instanceof Error ? error : new Error("the connection to the bus was closed"));
    });
    for await (const { type } of connection.status()) {
      if (this.#state === "ended") return;
      // Whatever server it is now: the consumer may be gone, and what it sent meanwhile is.
      if (type === "reconnect") this.#reopen();
    }
  }

  #lose(error: Error): void {
    if (this.#state === "ended") return;
    this.#end(error);
    this.#listener.lost(error);
  }

  #end(error: Error): void {
    this.#state = "ended";
    this.#generation++;
    clearInterval(this.#clock);
    this.#inbox?.unsubscribe();
    this.#waiters.fail(error);
  }
}

/** The bucket is no longer the one that was watched. */
class BucketGone extends Error {}

function codeOf(error: unknown): number | undefined {
  return (error as { code?: number }).code;
}

function elapsed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
