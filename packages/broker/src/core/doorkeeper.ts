/**
 * The port to whoever decides who may come in: credentials to the verbs that their bearer may use.
 *
 * Used by: front ends, which ask it once a connection. Implemented in auth/, one file a mode. Separate because the
 * decision is no protocol's and no queue's: it belongs to the bus or to an issuer (HIP, Security Considerations), and
 * what a connection holds afterwards is a {@link Verbs} that reaches nothing else.
 */
import type { FrontEnd, Verbs } from "./verbs.ts";

/** What a client said to be. `password` is a secret: it is never logged and never echoed. */
export interface Credentials {
  /** How it said so, for the log: `PLAIN`. */
  readonly mechanism: string;
  readonly user: string;
  readonly password: string;
  /** Where it comes from, for the log. */
  readonly peer: string;
}

/** Why somebody may not come in: for the log, never for the client. Holds no secret. */
export interface Refused {
  readonly refused: string;
}

/** Somebody is in, until {@link leave}. */
export interface Admission {
  /** All that this client can do. */
  readonly verbs: Verbs;
  /** Who it is: what a message's user-id must equal. */
  readonly user: string;
  /** Names of its namespace, beside `/` and the empty one. */
  readonly vhosts: readonly string[];
  /** When it ends by itself, milliseconds since the epoch; absent: never. {@link renew} may put it off. */
  readonly expiresAt?: number;
  /** Takes a fresh secret for the same identity: resolves to the new {@link expiresAt}. Absent: any secret is fine. */
  renew?(secret: string): Promise<{ readonly expiresAt: number } | Refused>;
  /** The connection is over and has given everything back; called once. */
  leave(): void;
}

export interface Doorkeeper {
  /**
   * Lets in or refuses. It answers at once where it needs to ask nobody. What a promise rejects with is a bug or a lost
   * bus, and lets nobody in.
   */
  admit(credentials: Credentials): Admission | Refused | Promise<Admission | Refused>;
  /** Told of the bus as a whole, whoever is in: whether anybody can be served. */
  join(frontEnd: FrontEnd): void;
  leave(frontEnd: FrontEnd): void;
}

export function isRefused(answer: Admission | Refused | { readonly expiresAt: number }): answer is Refused {
  return "refused" in answer;
}
