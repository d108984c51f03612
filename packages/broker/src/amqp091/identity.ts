/**
 * Who a connection is, once the doorkeeper let it in: its verbs, its user, the virtual hosts that are its own, and until
 * when.
 *
 *   nobody ── hold ──► somebody ⇄ (renewed) ── leave ──► nobody
 *                         └─ its time is up: the owner is told, and closes the connection
 *
 * Used by: connection, handlers/connection, publishing. Separate because a login has a life of its own: it may end
 * before the connection does, and a connection may end before it was let in.
 */
import { type Admission, isRefused, type Refused } from "../core/doorkeeper.ts";
import type { Verbs } from "../core/verbs.ts";
import { refuse } from "../refusals.ts";
import type { Audience } from "./audience.ts";
import type { Connection } from "./connection.ts";

/** The longest delay of a timer, milliseconds. */
const LONGEST = 2 ** 31 - 1;

export class Identity {
  readonly #connection: Connection;
  #admission: Admission | undefined;
  #audience: Audience | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** It was told that publishers should pause. */
  #blocked: boolean = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** What it can do. Nobody can do anything: to ask before it was let in is a bug. */
  get verbs(): Verbs {
    if (this.#admission === undefined) throw new Error("a connection that nobody let in has no verbs");
    return this.#admission.verbs;
  }

  /** Empty for nobody. */
  get user(): string {
    return this.#admission?.user ?? "";
  }

  /** Who it is, unlike everybody of another namespace. */
  get key(): string {
    return `${this.#admission?.vhosts.join(" ") ?? ""}\0${this.user}`;
  }

  /** Whether a virtual host of that name is its namespace. The empty one too: librabbitmq asks for it after a last `/`. */
  owns(vhost: string): boolean {
    return vhost === "/" || vhost === "" || this.#admission?.vhosts.includes(vhost) === true;
  }

  /** It was let in. */
  hold(admission: Admission): void {
    this.#admission = admission;
    this.#audience = this.#connection.connections.audienceOf(admission.verbs);
    this.#audience.enter(this);
    if (admission.expiresAt !== undefined) this.#expire(admission.expiresAt);
  }

  /** A fresh secret: whether it is one of the same identity. */
  async renew(secret: string): Promise<Refused | undefined> {
    const renewed = await this.#admission?.renew?.(secret);
    if (renewed === undefined) return undefined;
    if (isRefused(renewed)) return renewed;
    // It may have left meanwhile.
    if (this.#admission !== undefined) this.#expire(renewed.expiresAt);
    return undefined;
  }

  /** Everything is given back. */
  leave(): void {
    clearTimeout(this.#timer);
    const admission = this.#admission;
    this.#admission = undefined;
    this.#audience?.leave(this);
    admission?.leave();
  }

  /** Its connection is open, and may be told what stands. */
  opened(): void {
    this.blocked(this.#audience?.blockedReason);
  }

  /** Publishers should pause for that reason, or not any more: told to those who asked to be, when it changes. */
  blocked(reason: string | undefined): void {
    const { state, client, outbox } = this.#connection;
    if (state !== "running" || !client.blocked || this.#blocked === (reason !== undefined)) return;
    this.#blocked = reason !== undefined;
    if (reason === undefined) outbox.method(0, "connection.unblocked", {});
    else outbox.method(0, "connection.blocked", { reason });
  }

  room(): void {
    this.#connection.room();
  }

  /** Nothing can be served. */
  closing(reason: string): void {
    this.#connection.refuse(refuse("forced", { text: reason }));
  }

  #expire(at: number): void {
    clearTimeout(this.#timer);
    const left = at - Date.now();
    this.#timer = setTimeout(
      () => {
        if (Date.now() < at) this.#expire(at);
        else this.#connection.refuse(refuse("login-expired"));
      },
      Math.min(Math.max(left, 0), LONGEST),
    );
    this.#timer.unref();
  }
}
