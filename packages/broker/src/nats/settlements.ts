/**
 * Answers to deliveries.
 *
 * Responsibilities: what each settlement is on the wire; holding them while the connection is away; the proof that
 * the bus has processed what was sent to a queue.
 * Used by: bus.ts. Separate because settlements are not ordered with commands (design §5) and this is the only
 * place that can say when they are done.
 */
import type { Settlement } from "../core/bus.ts";
import { toAckSubject } from "./ack-subject.ts";
import { BusError } from "./errors.ts";
import type { Link } from "./link.ts";
import type { Requests } from "./requests.ts";

const encoder = new TextEncoder();
const ACK = encoder.encode("+ACK");
const TERM = encoder.encode("+TERM");
const PROGRESS = encoder.encode("+WPI");
const NAK = encoder.encode("-NAK");
/**
 * A delay is written into the consumer's state, so that the message is due at once after a restart too; the plain nak
 * that follows puts it in line now, in the order of the naks (design §5, measured).
 */
const NAK_LATER = encoder.encode('-NAK {"delay":1}');

/** A sequence that no log reaches: progress on it changes nothing. (The server answers none for sequence 0.) */
const NEVER_PENDING: number = Number.MAX_SAFE_INTEGER;

const ATTEMPT_MS = 1_000;

export interface SettlementsOptions {
  readonly link: Link;
  readonly requests: Requests;
  readonly stream: string;
  /** Milliseconds. */
  readonly timeout: number;
  /** Is there surely no such cursor? */
  gone(queue: string): Promise<boolean>;
}

export class Settlements {
  readonly #link: Link;
  readonly #requests: Requests;
  readonly #stream: string;
  readonly #timeout: number;
  readonly #gone: (queue: string) => Promise<boolean>;
  /** Sent while the connection was away: still good for any delivery that the bus remembers. */
  #held: { readonly token: string; readonly how: Settlement }[] = [];

  constructor(options: SettlementsOptions) {
    this.#link = options.link;
    this.#requests = options.requests;
    this.#stream = options.stream;
    this.#timeout = options.timeout;
    this.#gone = options.gone;
  }

  settle(token: string, how: Settlement): void {
    const { wire } = this.#link;
    if (!this.#link.up) {
      if (how !== "progress") this.#held.push({ token, how });
      return;
    }
    if (how === "ack") wire.settle(token, ACK);
    else if (how === "nak") {
      wire.settle(token, NAK_LATER);
      wire.settle(token, NAK);
    } else wire.settle(token, how === "term" ? TERM : PROGRESS);
  }

  abandoned(queue: string, sequence: number, deliverySequence: number, how: Settlement): void {
    this.settle(toAckSubject(this.#stream, queue, sequence, deliverySequence), how);
  }

  /** The bus answers this one after all that were sent before it; resolves to whether it did so at once. */
  async settled(queue: string): Promise<boolean> {
    const subject = toAckSubject(this.#stream, queue, NEVER_PENDING, 1);
    const deadline = Date.now() + this.#timeout;
    for (let isFirst = true; ; isFirst = false) {
      if (await this.#requests.answered(subject, "+WPI", ATTEMPT_MS)) return isFirst;
      // A cursor that is not there answers nothing, and has nothing to settle.
      if (await this.#gone(queue)) return true;
      if (Date.now() >= deadline) throw new BusError(`settlements of ${queue}: no answer`, { code: 0, timeout: true });
    }
  }

  up(): void {
    const held = this.#held;
    this.#held = [];
    for (const { token, how } of held) this.settle(token, how);
  }
}
