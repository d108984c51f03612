/**
 * The publish pipeline of one NATS connection.
 *
 * Responsibilities: one reply inbox instead of a promise or timer a message; what is held, in order, while the window is
 * full, the connection is down or the log has no leader.
 * Used by: bus.ts. Separate because it is the hot path in, and has a state of its own:
 *
 *   flowing ──(503 or 429)──► stalled ──(a probe is stored)──► flowing
 *      └──(connection lost)──► away ──(connection back)──► flowing      (stalled likewise goes away)
 *
 * On loss everything in flight is answered `unknown`; the client drops what it still had buffered when it dials
 * again, and nothing is handed to it before it is back. So nothing is sent late, and what is held keeps its order.
 * 503 (no leader) and 429 (too fast) mean "stored nowhere": those are sent again in their order, one first as a probe.
 */
import { randomBytes } from "node:crypto";
import type { PublishOutcome, PublishSink } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import type { Properties } from "../core/message.ts";
import type { Frame } from "./frame.ts";
import { InFlight, type Publish } from "./in-flight.ts";
import type { Link } from "./link.ts";
import { PropsHeader } from "./props-header.ts";
import { isStored, readRefusal } from "./pub-ack.ts";
import { Queue } from "./queue.ts";
import type { WireSubscription } from "./wire.ts";

/** There is room again below this part of the window. */
const AGAIN = 0.75;
const PROBE_MIN_MS = 50;
const PROBE_MAX_MS = 1_000;
/** How long a log's last leader may take to answer once it is known that it leads no more; an election takes longer. */
const LAST_ANSWER_MS = 3_000;

export interface PublisherListener {
  room(): void;
  /** The log has no leader (or is overrun): held until it has. */
  stalled(stalled: boolean): void;
  /** A message of so many octets was refused for lack of room. */
  full(octets: number): void;
}

export interface PublisherOptions {
  readonly link: Link;
  readonly listener: PublisherListener;
  readonly inboxPrefix: string;
  /** How long a publish may be held or unanswered, milliseconds. */
  readonly timeout: number;
  /** Octets under way above which there is no room; the window of {@link InFlight} by default. */
  readonly windowOctets?: number | undefined;
  readonly log: Log;
}

export class Publisher {
  readonly #options: PublisherOptions;
  readonly #header: PropsHeader = new PropsHeader();
  readonly #flying: InFlight;
  readonly #held: Queue<Publish> = new Queue();
  readonly #inbox: string;
  readonly #replies: WireSubscription;
  readonly #tick: NodeJS.Timeout;
  /** Numbers given out when a second began: finds what is overdue without a clock a message. */
  readonly #marks: { readonly at: number; readonly number: number }[] = [];
  #state: "flowing" | "stalled" | "away" = "flowing";
  #room: boolean = true;
  #again: Publish[] = [];
  /** The listener was told that the log has no leader. */
  #stalled: boolean = false;
  #stoppedAt = 0;
  /** Sent below this number before the log lost its leader, as far as is known: not answered for much longer. */
  #doubtful: { readonly below: number; readonly since: number } | undefined;
  #probeDelay = PROBE_MIN_MS;
  #probe: NodeJS.Timeout | undefined;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#flying = new InFlight(options.windowOctets);
    // Short, for it is written and parsed with every message.
    this.#inbox = `${options.inboxPrefix}.${randomBytes(6).toString("base64url")}.`;
    this.#replies = options.link.wire.subscribe(
      `${this.#inbox}*`,
      (frame) => this.#replied(frame),
      (error) => options.log.error({}, `publish replies: ${error.message}`),
    );
    this.#tick = setInterval(() => this.#overdue(), 1_000);
    this.#tick.unref();
  }

  /** False while the window is full or something is held. */
  get room(): boolean {
    return this.#room;
  }

  publish(subject: string, properties: Properties, body: readonly Uint8Array[], sink: PublishSink, tag: number): void {
    const head = this.#header.block(properties);
    let size = head.length;
    for (const piece of body) size += piece.length;
    const publish: Publish = { subject, head, body, size, sink, tag, number: 0 };
    if (this.#held.length > 0 || !this.#maySend()) {
      this.#held.push(publish);
      this.#room = false;
      if (this.#state === "stalled") this.#scheduleProbe();
    } else this.#send(publish);
  }

  down(): void {
    clearTimeout(this.#probe);
    this.#probe = undefined;
    this.#state = "away";
    this.#room = false;
    this.#stoppedAt = Date.now();
    // Known to be stored nowhere: these wait with the held ones, before them.
    this.#holdAgain();
    this.#giveUp(this.#flying.next);
  }

  up(): void {
    this.#flow();
    this.#flush();
  }

  /** The server does not permit this login the oldest publish to that subject: it drops it, and answers nothing else. */
  denied(subject: string): void {
    const publish = this.#flying.oldestOn(subject);
    if (publish !== undefined) this.#settled(publish, publish.number, "denied");
  }

  /** Another server leads the log: what the last one was sent and has not answered is unknown after a moment. */
  elected(): void {
    this.#doubt();
  }

  close(): void {
    clearInterval(this.#tick);
    clearTimeout(this.#probe);
    this.#replies.unsubscribe();
  }

  #maySend(): boolean {
    return this.#state === "flowing" && this.#flying.free;
  }

  #send(publish: Publish): void {
    const number = this.#flying.add(publish);
    if (this.#flying.isFull()) this.#room = false;
    try {
      this.#options.link.wire.send(publish, this.#inbox, number);
    } catch (error) {
      // Refused before it is sent: too large, or closed for good. Answered as ever: later.
      this.#options.log.error({}, `publish on ${publish.subject}: ${error instanceof Error ? error.message : error}`);
      queueMicrotask(() => this.#settled(publish, number, "refused"));
    }
  }

  #replied(message: Frame): void {
    const number = message.number(this.#inbox.length);
    const publish = this.#flying.find(number);
    // Late, of a publish already answered as unknown.
    if (publish === undefined) return;
    if (isStored(message.body)) {
      this.#answer(publish, "stored");
      if (this.#state === "stalled") this.#resume();
      if (!this.#room || this.#held.length > 0) this.#flush();
    } else this.#failed(publish, number, message);
  }

  #failed(publish: Publish, number: number, message: Frame): void {
    const refusal = readRefusal(message);
    if (refusal.kind === "again") {
      this.#stall(publish, refusal.text);
      return;
    }
    if (refusal.kind === "refused") this.#options.log.warn({}, `publish on ${publish.subject}: ${refusal.text}`);
    this.#settled(publish, number, refusal.kind);
    if (refusal.kind === "full") this.#options.listener.full(publish.size);
  }

  #settled(publish: Publish, number: number, outcome: PublishOutcome): void {
    if (this.#flying.find(number) !== publish) return;
    this.#answer(publish, outcome);
    this.#allAnswered();
    if (!this.#room || this.#held.length > 0) this.#flush();
  }

  #answer(publish: Publish, outcome: PublishOutcome): void {
    this.#flying.remove(publish);
    publish.sink.published(publish.tag, outcome, publish.subject);
  }

  #stall(publish: Publish, why: string): void {
    this.#flying.remove(publish);
    this.#again.push(publish);
    this.#room = false;
    if (this.#state === "flowing") {
      this.#state = "stalled";
      this.#stoppedAt = Date.now();
      this.#probeDelay = PROBE_MIN_MS;
      this.#options.log.warn({}, `publishes are held: the log answers ${why}`);
      this.#stalled = true;
      this.#options.listener.stalled(true);
      this.#doubt();
    }
    this.#allAnswered();
  }

  /** Nothing is sent again while an earlier one is still unanswered: order first. */
  #allAnswered(): void {
    if (this.#state !== "stalled" || this.#flying.count > 0) return;
    this.#holdAgain();
    this.#scheduleProbe();
  }

  #holdAgain(): void {
    if (this.#again.length === 0) return;
    this.#again.sort((a, b) => a.number - b.number);
    this.#held.unshift(this.#again);
    this.#again = [];
  }

  #scheduleProbe(): void {
    if (this.#probe !== undefined || this.#flying.count > 0 || this.#held.length === 0) return;
    this.#probe = setTimeout(() => {
      this.#probe = undefined;
      this.#probeDelay = Math.min(this.#probeDelay * 2, PROBE_MAX_MS);
      const first = this.#state === "stalled" && this.#flying.count === 0 ? this.#held.shift() : undefined;
      if (first === undefined) return;
      this.#send(first);
      this.#doubt();
    }, this.#probeDelay);
  }

  #doubt(): void {
    if (this.#flying.count > 0) this.#doubtful = { below: this.#flying.next, since: Date.now() };
  }

  /** Stored while stalled: there is a leader. */
  #resume(): void {
    if (this.#flying.count > 0) return;
    this.#holdAgain();
    this.#flow();
  }

  #flow(): void {
    this.#state = "flowing";
    if (!this.#stalled) return;
    this.#stalled = false;
    this.#options.log.info({}, "publishes flow again");
    this.#options.listener.stalled(false);
  }

  #flush(): void {
    while (this.#held.length > 0 && this.#maySend()) this.#send(this.#held.shift() as Publish);
    if (this.#room || this.#state !== "flowing" || this.#held.length > 0) return;
    if (this.#flying.isFull(AGAIN)) return;
    this.#room = true;
    this.#options.listener.room();
  }

  /** Once a second: what has waited longer than the bus timeout is answered. */
  #overdue(): void {
    const now = Date.now();
    if (this.#state !== "flowing" && this.#held.length > 0 && now - this.#stoppedAt > this.#options.timeout) {
      // Held and never stored: refused, surely.
      for (let publish = this.#held.shift(); publish !== undefined; publish = this.#held.shift()) {
        publish.sink.published(publish.tag, "refused");
      }
      // Without a leader only a publish tells whether there is one again: let the publishers try.
      if (this.#state === "stalled" && this.#flying.count === 0) {
        this.#flow();
        this.#flush();
      }
    }
    const doubtful = this.#doubtful;
    if (doubtful !== undefined && now - doubtful.since > LAST_ANSWER_MS) {
      this.#doubtful = undefined;
      this.#giveUp(doubtful.below);
      this.#allAnswered();
      this.#flush();
    }
    this.#marks.push({ at: now, number: this.#flying.next });
    const mark = this.#marks[0];
    if (mark === undefined || now - mark.at <= this.#options.timeout) return;
    this.#marks.shift();
    this.#giveUp(mark.number);
    this.#allAnswered();
    this.#flush();
  }

  /** What is unanswered below this number will not be answered: whether it is stored is unknown. */
  #giveUp(below: number): void {
    this.#flying.removeBelow(below, (publish) => publish.sink.published(publish.tag, "unknown"));
  }
}
