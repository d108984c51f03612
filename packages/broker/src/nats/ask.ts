/**
 * One pull request at a time, on an inbox of its own.
 *
 * Responsibilities: sends the request, counts what it still owes in messages and octets, says how it ended.
 * Used by: pull-line, which keeps at most two. Separate because deliveries do not say which request they answer:
 * only an inbox with one request on it can be counted exactly (and never a wildcard over several, design §6).
 */
import { Buffer } from "node:buffer";
import type { Incoming } from "../core/bus.ts";
import type { Frame } from "./frame.ts";
import { toIncoming } from "./incoming.ts";
import type { PullContext } from "./pulls.ts";
import { readHeader, readStatus } from "./status.ts";
import type { WireSubscription } from "./wire.ts";

/**
 * How a request ended. `done`: every message came. `narrow`: the next message does not fit what is left of its octets.
 * `busy`: nothing for a no-wait request, but other pulls wait, so it says little. The rest as in `PullSink.ended`.
 */
export type AskEnd = "done" | "narrow" | "busy" | "empty" | "expired" | "gone" | "absent" | "lost";

export interface AskOwner {
  arrived(message: Incoming, octets: number): void;
  ended(ask: Ask, end: AskEnd): void;
}

const SLACK_MS = 2_000;

export class Ask {
  readonly #context: PullContext;
  readonly #owner: AskOwner;
  readonly #inbox: string;
  readonly #subscription: WireSubscription;
  #deadline = 0;
  /** Messages the bus still owes. */
  outstanding = 0;
  /** Messages that came of the present request. */
  came = 0;
  /** Octets it was given. */
  width = 0;
  wait: boolean = true;
  /** Its octets are the reserve's: it never waits, whatever it is asked for, so that nobody idles on the reserve. */
  large: boolean = false;
  /** What is left of its octets, while it holds any. */
  #left = 0;
  #holds: boolean = false;
  /** How it will have ended when all but `missing` have come. */
  #ending: { readonly end: AskEnd; readonly missing: number } | undefined;

  constructor(context: PullContext, owner: AskOwner) {
    this.#context = context;
    this.#owner = owner;
    this.#inbox = context.inbox();
    this.#subscription = context.link.wire.subscribe(
      this.#inbox,
      (frame) => this.#received(frame),
      (error) => context.log.error({}, `pull inbox: ${error.message}`),
    );
  }

  get active(): boolean {
    return this.outstanding > 0;
  }

  send(subject: string, count: number, wait: boolean, octets: number, large: boolean): void {
    this.outstanding = count;
    this.came = 0;
    this.width = octets;
    this.#left = octets;
    this.#holds = true;
    this.large = large;
    this.wait = wait;
    const { expires } = this.#context;
    this.#deadline = performance.now() + expires + SLACK_MS;
    const until = wait && !large ? `"expires":${expires}000000` : '"no_wait":true';
    const request = Buffer.from(`{"batch":${count},${until},"max_bytes":${octets}}`);
    this.#context.link.wire.publish(subject, this.#inbox, request);
  }

  /** The bus forgot it: it should have ended by itself. */
  overdue(now: number): boolean {
    return this.outstanding > 0 && now > this.#deadline;
  }

  /** Stops now; what is under way is lost. For a connection that is gone. */
  drop(): void {
    this.#release();
    this.outstanding = 0;
    this.#subscription.unsubscribe();
  }

  /** Counts on nothing more of it: reported as missing already, though some may still come. */
  abandon(): void {
    this.#release();
    this.outstanding = 0;
    void this.drain();
  }

  /** Stops; resolves when nothing can come any more. What is under way is still handed on before. */
  async drain(): Promise<void> {
    try {
      await this.#subscription.drain();
    } catch {
      // Closed already: nothing can come.
    }
    this.#release();
    this.outstanding = 0;
  }

  #received(message: Frame): void {
    const incoming = toIncoming(message, this.#context.log);
    if (incoming === undefined) {
      this.#status(message);
      return;
    }
    const octets = message.weight;
    if (this.outstanding > 0) {
      this.outstanding--;
      this.came++;
      const used = Math.min(this.#left, octets);
      this.#left -= used;
      if (!this.large) this.#context.budget.giveBack(used);
    }
    this.#owner.arrived(incoming, octets);
    if (!this.#holds) return;
    if (this.outstanding === 0) this.#end("done");
    else if (this.#ending !== undefined && this.outstanding <= this.#ending.missing) this.#end(this.#ending.end);
    // The server ends a request whose octets are used up exactly, without a word.
    else if (this.#left === 0) this.#end("narrow");
  }

  #status(message: Frame): void {
    if (this.outstanding === 0) return;
    const { code, description } = readStatus(message.head);
    const end = toEnd(code, description);
    if (end === undefined) return;
    if (end === "lost") this.#context.log.debug({}, `a pull ended: ${code} ${description}`);
    // A replicated server holds messages back until a quorum has them, and not this: more may be under way.
    const pending = readHeader(message.head, "Nats-Pending-Messages");
    const missing = pending === "" ? this.outstanding : Number(pending);
    if (missing < this.outstanding) this.#ending = { end, missing };
    else this.#end(end);
  }

  #end(end: AskEnd): void {
    this.#release();
    this.#owner.ended(this, end);
  }

  #release(): void {
    this.#ending = undefined;
    if (!this.#holds) return;
    this.#holds = false;
    if (this.large) this.#context.budget.giveBackLargest();
    else this.#context.budget.giveBack(this.#left);
  }
}

function toEnd(code: number, description: string): AskEnd | undefined {
  switch (code) {
    case 100:
      return undefined;
    case 404:
      return "empty";
    case 408:
      return description.includes("Pending") ? "busy" : "expired";
    case 409:
      if (description.includes("Message Size")) return "narrow";
      // Every message was sent and octets are left. Known by counting, and it may even overtake the messages.
      if (description.includes("Batch Completed")) return undefined;
      return description.includes("Consumer Deleted") ? "gone" : "lost";
    case 503:
      return "absent";
    default:
      return "lost";
  }
}
