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

export class Settlements {
  readonly #link: Link;
  readonly #requests: Requests;
  readonly #stream: string;
  /** Sent while the connection was away: still good for any delivery that the bus remembers. */
  #held: { readonly token: string; readonly how: Settlement }[] = [];

  constructor(link: Link, requests: Requests, stream: string) {
    this.#link = link;
    this.#requests = requests;
    this.#stream = stream;
  }

  settle(token: string, how: Settlement): void {
    const { connection } = this.#link;
    if (!this.#link.up) {
      if (how !== "progress") this.#held.push({ token, how });
      return;
    }
    if (how === "ack") connection.publish(token, ACK);
    else if (how === "nak") {
      connection.publish(token, NAK_LATER);
      connection.publish(token, NAK);
    } else connection.publish(token, how === "term" ? TERM : PROGRESS);
  }

  abandoned(queue: string, sequence: number, deliverySequence: number, how: Settlement): void {
    this.settle(toAckSubject(this.#stream, queue, sequence, deliverySequence), how);
  }

  /** The bus answers this one after all that were sent before it. */
  async settled(queue: string): Promise<void> {
    await this.#requests.ask(toAckSubject(this.#stream, queue, NEVER_PENDING, 1), "+WPI");
  }

  up(): void {
    const held = this.#held;
    this.#held = [];
    for (const { token, how } of held) this.settle(token, how);
  }
}
