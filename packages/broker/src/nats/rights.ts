/**
 * A login's rights, tried on the bus over a connection of its own.
 *
 * Responsibilities: a write to the bucket that can never succeed (it expects a sequence that no subject has), a pull that
 * can bring nothing (no message is one octet long), progress on a delivery that never was: each is answered where it is
 * permitted, and refused by the server where it is not. Used by: open-accounts. Separate because only nats/ knows how.
 */
import {
  headers,
  type MsgHdrs,
  type NatsConnection,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
} from "@nats-io/nats-core";
import type { Rights } from "../core/rights.ts";
import { toAckSubject } from "./ack-subject.ts";

/** No subject's last sequence: the highest that the server can read. */
const NEVER = "18446744073709551615";
const NOTHING = '{"batch":1,"no_wait":true,"max_bytes":1}';
/** Milliseconds. */
const PATIENCE = 5_000;

export interface RightsOptions {
  /** The login's own; none that delivers, whose refusals mean something else. */
  readonly connection: NatsConnection;
  readonly stream: string;
  readonly bucket: string;
  readonly domain: string | undefined;
}

export class NatsRights implements Rights {
  readonly #options: RightsOptions;
  readonly #api: string;
  /** Queues that it may consume: asked once, for what is taken back later ends its connections. */
  readonly #consumable: Set<string> = new Set<string>();

  constructor(options: RightsOptions) {
    this.#options = options;
    this.#api = options.domain === undefined ? "$JS.API" : `$JS.${options.domain}.API`;
  }

  async toWrite(key: string): Promise<string | undefined> {
    const block = headers();
    block.set("Nats-Expected-Last-Subject-Sequence", NEVER);
    const { domain, bucket } = this.#options;
    const subject = `$KV.${bucket}.${key}`;
    return await this.#denied(domain === undefined ? subject : `${this.#api}.${subject}`, "", block);
  }

  async toConsume(queue: string): Promise<string | undefined> {
    if (this.#consumable.has(queue)) return undefined;
    const { stream } = this.#options;
    const denied = await Promise.all([
      this.#denied(`${this.#api}.CONSUMER.MSG.NEXT.${stream}.${queue}`, NOTHING),
      this.#denied(toAckSubject(stream, queue, Number.MAX_SAFE_INTEGER, 1), "+WPI"),
    ]);
    const subject = denied.find((each) => each !== undefined);
    if (subject === undefined) this.#consumable.add(queue);
    return subject;
  }

  async #denied(subject: string, payload: string, block?: MsgHdrs): Promise<string | undefined> {
    try {
      const options = block === undefined ? { timeout: PATIENCE } : { timeout: PATIENCE, headers: block };
      await this.#options.connection.request(subject, payload, options);
      return undefined;
    } catch (error) {
      const violation = violationOf(error);
      if (violation !== undefined) return violation.subject;
      // Nobody there to take it: permitted, and what is asked of it next says so.
      if (error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders()))
        return undefined;
      throw new RightUnknown(`${subject}: the bus did not say whether this login may write it`, { cause: error });
    }
  }
}

/** The bus did not answer: of the shape of a bus error. */
class RightUnknown extends Error {
  override readonly name: string = "RightUnknown";
  readonly code: number = 0;
  readonly timeout: boolean = true;
}

/** What of an error is the server's refusal. */
export function violationOf(error: unknown): PermissionViolationError | undefined {
  if (error instanceof PermissionViolationError) return error;
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof PermissionViolationError ? cause : undefined;
}
