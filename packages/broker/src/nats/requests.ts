/**
 * Requests to JetStream's JSON API.
 *
 * Responsibilities: subject prefix (domain), time limits, the difference between "refused", "nothing happened" and
 * "unknown", asking again where that is safe.
 * Used by: bus.ts, and what asks over it: stream, cursors, interest, log-look, settlements. Separate because raw
 * requests are exact (create against update, metadata, max_consumers) and every caller needs the same judgement of
 * their failures.
 */

import type { Permit } from "@amqp/topology";
import { errors, type Msg } from "@nats-io/nats-core";
import { BusError, Code, isUnled } from "./errors.ts";
import type { Link } from "./link.ts";

interface ApiReply {
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description?: string };
}

export interface RequestsOptions {
  readonly domain: string | undefined;
  /** For what changes something: below the lease (design §4), milliseconds. */
  readonly writeTimeout: number;
  /** For what only reads, which is asked again until then, milliseconds. */
  readonly readTimeout: number;
}

const RETRY_MS = 100;
/** The first attempt of a read, and the longest: what was asked of a server that has just died is soon asked again. */
const FIRST_ATTEMPT_MS = 1_500;
const LONGEST_ATTEMPT_MS = 5_000;

export class Requests {
  readonly #link: Link;
  readonly #prefix: string;
  readonly #options: RequestsOptions;
  /** Woken when the connection goes down or comes up. */
  readonly #waiting: Set<() => void> = new Set();

  constructor(link: Link, options: RequestsOptions) {
    this.#link = link;
    this.#options = options;
    this.#prefix = options.domain === undefined ? "$JS.API" : `$JS.${options.domain}.API`;
  }

  /** The subject of an API verb, for who publishes to it (pulls). */
  subject(verb: string): string {
    return `${this.#prefix}.${verb}`;
  }

  /** The connection's state changed. */
  changed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Reads: safe to ask again, so it is, until the read timeout. Throws {@link BusError}. */
  async read<T>(verb: string, body?: object, timeout: number = this.#options.readTimeout): Promise<T> {
    const deadline = Date.now() + timeout;
    for (let attempt = FIRST_ATTEMPT_MS; ; attempt = Math.min(attempt * 2, LONGEST_ATTEMPT_MS)) {
      try {
        return await this.#once<T>(verb, body, Math.min(deadline, Date.now() + attempt));
      } catch (error) {
        if (!(error instanceof BusError) || !(error.timeout || isTransient(error.code))) throw error;
        if (Date.now() + RETRY_MS >= deadline) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  /**
   * Changes something. Asked again only where nothing can have happened (nobody answered for the subject).
   * Throws {@link BusError}, with `timeout` the outcome is unknown; and what `permit` throws.
   */
  async write<T>(verb: string, body?: object, permit?: Permit): Promise<T> {
    const deadline = Date.now() + this.#options.writeTimeout;
    for (;;) {
      try {
        return await this.#once<T>(verb, body, deadline, permit);
      } catch (error) {
        if (!(error instanceof BusError) || error.timeout || !isTransient(error.code)) throw error;
        if (Date.now() + RETRY_MS >= deadline) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  /**
   * Stores an empty message; resolves to its sequence. Throws {@link BusError}, with `timeout` the outcome is unknown; and
   * what `permit` throws.
   */
  async publish(subject: string, timeout: number, permit?: Permit): Promise<number> {
    return readReply<{ seq: number }>(subject, await this.#send(subject, "", Date.now() + timeout, {}, permit)).seq;
  }

  /** Takes the next message of a consumer; undefined where there is none. Throws {@link BusError}. */
  async next(stream: string, consumer: string, timeout: number): Promise<Msg | undefined> {
    const subject = this.subject(`CONSUMER.MSG.NEXT.${stream}.${consumer}`);
    const request = '{"batch":1,"no_wait":true}';
    // What comes has its own subject, by which the client's shared inbox does not find who asked.
    const message = await this.#send(subject, request, Date.now() + timeout, { noMux: true });
    return message.headers === undefined || message.headers.code === 0 ? message : undefined;
  }

  /**
   * Any request on this connection. False where nobody answered within `timeout` milliseconds; throws
   * {@link BusError} for anything else that is amiss.
   */
  async answered(subject: string, payload: string, timeout: number): Promise<boolean> {
    try {
      await this.#send(subject, payload, Date.now() + timeout);
      return true;
    } catch (error) {
      if (error instanceof BusError && (error.timeout || error.code === Code.noResponders)) return false;
      throw error;
    }
  }

  async #once<T>(verb: string, body: object | undefined, deadline: number, permit?: Permit): Promise<T> {
    const payload = body === undefined ? "" : JSON.stringify(body);
    return readReply<T>(verb, await this.#send(this.subject(verb), payload, deadline, {}, permit));
  }

  async #send(
    subject: string,
    payload: string,
    deadline: number,
    how: { noMux?: boolean } = {},
    permit?: Permit,
  ): Promise<Msg> {
    await this.#untilUp(subject, deadline);
    permit?.();
    let wake = (): void => {};
    const lost = new Promise<never>((_, reject) => {
      wake = (): void => reject(new BusError(`${subject}: the bus went away`, { code: 0, timeout: true }));
    });
    this.#waiting.add(wake);
    try {
      const timeout = Math.max(1, deadline - Date.now());
      // It must not overtake what was published (settlements, above all).
      this.#link.wire.flush();
      const answer = this.#link.connection.request(subject, payload, { ...how, timeout });
      // Not a moment later than it was permitted.
      if (permit !== undefined) this.#link.wire.hurry();
      return await Promise.race([answer, lost]);
    } catch (error) {
      throw toBusError(subject, error);
    } finally {
      this.#waiting.delete(wake);
    }
  }

  async #untilUp(subject: string, deadline: number): Promise<void> {
    while (!this.#link.up) {
      const left = deadline - Date.now();
      if (left <= 0) throw new BusError(`${subject}: the bus is away`, { code: Code.noResponders, timeout: false });
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(() => {
          this.#waiting.delete(wake);
          resolve();
        }, left);
        this.#waiting.add(wake);
      });
    }
  }
}

/** Throws {@link BusError} where it is a refusal of `what`. */
function readReply<T>(what: string, message: Msg): T {
  const reply = message.json<T & ApiReply>();
  if (reply.error === undefined) return reply;
  throw new BusError(`${what}: ${reply.error.description ?? "refused"}`, {
    code: reply.error.err_code ?? reply.error.code,
    timeout: false,
  });
}

/** Nothing happened and it may work in a moment. */
function isTransient(code: number): boolean {
  return code === Code.noResponders || isUnled(code);
}

function toBusError(subject: string, error: unknown): BusError {
  if (error instanceof BusError) return error;
  const cause = error instanceof Error ? error.cause : undefined;
  if (error instanceof errors.NoRespondersError || cause instanceof errors.NoRespondersError) {
    return new BusError(`${subject}: nobody answers`, { code: Code.noResponders, timeout: false, cause: error });
  }
  if (isPermission(error) || isPermission(cause)) {
    return new BusError(`${subject}: no permission`, { code: Code.forbidden, timeout: false, cause: error });
  }
  return new BusError(`${subject}: no answer in time`, { code: 0, timeout: true, cause: error });
}

function isPermission(error: unknown): boolean {
  return error instanceof errors.PermissionViolationError;
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
