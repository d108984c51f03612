/**
 * JetStream's requests, answers and headers as this package needs them.
 *
 * Used by: nats.ts and nats/watch.ts. Separate because it is the one place that knows how the server spells a
 * deletion, a stored message's position and a refusal; everything above speaks of entries and revisions.
 */
import {
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  NoRespondersError,
  RequestError,
  TimeoutError,
} from "@nats-io/nats-core";
import { BucketSilent, type Permit } from "../bucket.ts";

/** Server errors that are told apart (nats-server's errors.json). */
export const ERROR = {
  clusterNotAvailable: 10008,
  clusterNoLeader: 10009,
  consumerNotFound: 10014,
  noMessage: 10037,
  streamNotFound: 10059,
  wrongLastSequence: 10071,
  wrongLastSequenceUnknown: 10164,
} as const;

/** A refusal by JetStream, with the server's own number for it. */
export class ApiError extends Error {
  readonly code: number;
  /** It answered: nothing was changed. */
  readonly timeout: boolean = false;

  constructor(code: number, description: string) {
    super(description);
    this.name = "ApiError";
    this.code = code;
  }
}

interface Answer {
  readonly error?: { readonly err_code?: number; readonly description?: string };
}

/** How long to wait before a request that nobody took is sent again. */
const NO_LEADER_PAUSE = 100;

/** How long one attempt of a read waits: what is asked while the connection is away is never sent by the client. */
const READ_ATTEMPT = 400;

export interface RequestLimits {
  /** How long all attempts together wait, milliseconds. */
  readonly timeout: number;
  readonly headers?: MsgHdrs;
  /** A read may be asked again while it is not answered; a write whose answer is missing has an unknown outcome. */
  readonly isRead?: boolean;
  /** Of a write, asked before each attempt. */
  readonly permit?: Permit | undefined;
}

/**
 * One request to JetStream and its JSON answer; throws {@link ApiError} where that is a refusal, and what `permit` throws.
 * "No responders" means that the stream has no leader right now and that nothing was stored: it is sent again until the time
 * is up.
 */
export async function request<T>(
  connection: NatsConnection,
  subject: string,
  payload: Uint8Array | string,
  { timeout, headers, isRead = false, permit }: RequestLimits,
): Promise<T> {
  const end = performance.now() + timeout;
  for (;;) {
    const left = Math.max(1, end - performance.now());
    const options = { timeout: isRead ? Math.min(left, READ_ATTEMPT) : left, ...(headers && { headers }) };
    permit?.();
    try {
      const answering = connection.request(subject, payload, options);
      // Not a moment later than it was permitted: the client would wait for the turn's microtasks.
      if (permit !== undefined) void connection.flush().catch(() => undefined);
      const answer = (await answering).json<T & Answer>();
      if (answer.error === undefined) return answer;
      throw new ApiError(answer.error.err_code ?? 0, answer.error.description ?? "refused by JetStream");
    } catch (error) {
      const again = isNoResponders(error) || isUnled(error) || (isRead && error instanceof TimeoutError);
      if (error instanceof ApiError && !isUnled(error)) throw error;
      if (!again || performance.now() + NO_LEADER_PAUSE >= end) {
        const why = error instanceof Error ? error.message : String(error);
        throw new BucketSilent(`the bus did not answer ${subject}: ${why}`, { cause: error });
      }
    }
    await new Promise((resolve) => setTimeout(resolve, NO_LEADER_PAUSE));
  }
}

/** Nobody leads just now: nothing happened. */
function isUnled(error: unknown): boolean {
  return (
    error instanceof ApiError && (error.code === ERROR.clusterNotAvailable || error.code === ERROR.clusterNoLeader)
  );
}

function isNoResponders(error: unknown): boolean {
  return error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());
}

/** Whether a stored message says that its key is gone: deleted, purged, or expired (the server's own marker). */
export function isGone(headers: MsgHdrs | undefined): boolean {
  if (headers === undefined) return false;
  const operation = headers.get("KV-Operation");
  return operation === "DEL" || operation === "PURGE" || headers.has("Nats-Marker-Reason");
}

/** As {@link isGone}, of the header's octets as the API gives them. */
export function isGoneBlock(block: string): boolean {
  return /^(?:KV-Operation: *(?:DEL|PURGE)|Nats-Marker-Reason:)/im.test(block);
}

/** Where a pushed message stands. */
export interface Position {
  /** Its sequence in the stream: the revision. */
  readonly revision: number;
  /** Its number in the consumer, from 1, without gaps. */
  readonly delivery: number;
}

/**
 * The position in a pushed message's reply, `$JS.ACK.<stream>.<consumer>.<attempts>.<sequence>.<delivery>.<time>.<pending>`;
 * in its longer form `<domain>.<account>` stand before the stream.
 */
export function positionOf(message: Msg): Position {
  const words = (message.reply ?? "").split(".");
  const start = words.length > 9 ? 7 : 5;
  return { revision: Number(words[start]), delivery: Number(words[start + 1]) };
}
