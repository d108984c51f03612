/**
 * Waiting until the log's leader knows a cursor's filters, in a cluster.
 *
 * Responsibilities: a probe that the log keeps only where its leader has applied every change of a cursor made before.
 * Used by: cursors. Separate because it makes up for one fact: on an interest stream each server drops, and confirms, what
 * matches no filter that it knows, and a change of a cursor is answered by the cursor's leader, which may be another server
 * than the log's. The servers apply such changes in one order, but each in its own time; while they elect the leader who
 * hands the changes out, one may be seconds behind (measured: confirmed and gone).
 *
 * The probe: a cursor of this process's own is given a new subject, after the change that is waited for; a message is
 * published there, and the log is asked whether it has it. The next probe's subject takes the message away.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Fence } from "@amqp/topology";
import { nuid } from "@nats-io/nats-core";
import { PATIENCE } from "../core/patience.ts";
import { BusError } from "./errors.ts";
import { nextAbove } from "./log-look.ts";
import type { Requests } from "./requests.ts";

const ATTEMPT_MS = 1_000;
const LONGEST_PAUSE_MS = 250;
/** An idle broker leaves no cursor behind for long. */
const IDLE: number = 300 * 1_000_000_000;

/** No AMQP name holds a `$`: no queue is called so, and no client can publish there. */
const PROBE = "$probe";

export interface InterestOptions {
  readonly requests: Requests;
  readonly stream: string;
  /** The first word of the log's subjects. */
  readonly root: string;
}

export class Interest {
  readonly #options: InterestOptions;
  readonly #cursor: string = `${PROBE}-${nuid.next()}`;
  readonly #fence: Fence = new Fence(() => this.#probe());

  constructor(options: InterestOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the log's leader knows every change of a cursor that was answered before this call. All calls of one
   * turn share a probe. Throws {@link BusError} where there is no such leader for long.
   */
  known(): Promise<void> {
    return this.#fence.pass();
  }

  async #probe(): Promise<void> {
    const { requests, stream, root } = this.#options;
    const end = Date.now() + PATIENCE;
    const subject = `${root}.${PROBE}.${nuid.next()}`;
    const config = {
      name: this.#cursor,
      durable_name: this.#cursor,
      filter_subject: subject,
      deliver_policy: "new",
      ack_policy: "explicit",
      inactive_threshold: IDLE,
    };
    // The same again changes nothing, so it is as safe to ask twice as a read.
    await requests.read(`CONSUMER.CREATE.${stream}.${this.#cursor}`, { stream_name: stream, config }, PATIENCE);
    for (let pause = 1; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const put = await requests.put(subject, ATTEMPT_MS);
      // Nobody else's message is stored either.
      if (put === "refused") return;
      if (put === "stored" && (await nextAbove(requests, stream, subject, 0)) !== undefined) return;
      if (Date.now() > end)
        throw new BusError("the log's leader does not learn of a cursor", { code: 0, timeout: true });
      await sleep(pause);
    }
  }
}
