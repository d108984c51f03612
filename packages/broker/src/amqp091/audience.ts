/**
 * The connections that use the same verbs: what the core says, it says to all of them.
 *
 * Used by: connections (one for each verbs in use), identity. Separate because the core is told of one front end, not of
 * thousands, and because a connection that comes later must learn of a block that stands.
 */
import type { FrontEnd, Verbs } from "../core/verbs.ts";
import type { Identity } from "./identity.ts";

export class Audience implements FrontEnd {
  readonly verbs: Verbs;
  /** Why publishers should pause, while they should. */
  blockedReason: string | undefined;
  readonly #members: Set<Identity> = new Set<Identity>();
  readonly #empty: () => void;

  /** `empty` is told when the last connection has left. */
  constructor(verbs: Verbs, empty: () => void) {
    this.verbs = verbs;
    this.#empty = empty;
    verbs.join(this);
  }

  enter(member: Identity): void {
    this.#members.add(member);
  }

  leave(member: Identity): void {
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    this.verbs.leave(this);
    this.#empty();
  }

  blocked(reason: string | undefined): void {
    this.blockedReason = reason;
    for (const member of this.#members) member.blocked(reason);
  }

  room(): void {
    for (const member of this.#members) member.room();
  }

  closing(reason: string): void {
    for (const member of [...this.#members]) member.closing(reason);
  }

  serving(): void {
    // Whoever comes now is served; nobody waits here.
  }
}
