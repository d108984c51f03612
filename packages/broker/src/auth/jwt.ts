/**
 * The doorkeeper who takes a token for a password: its organisation is the namespace, its subject the user (HIP,
 * Security Considerations, option 2). The user name that a client says beside it means nothing.
 *
 * Used by: open. Separate because it is one of the modes.
 */
import type { Admission, Credentials, Doorkeeper, Refused } from "../core/doorkeeper.ts";
import type { Health } from "../core/health.ts";
import type { Namespace } from "../core/namespace.ts";
import type { FrontEnd, Verbs } from "../core/verbs.ts";
import { type Sharable, Shared } from "./shared.ts";
import type { Bearer, Tokens } from "./tokens.ts";

/** A tenant that is served. */
export interface Tenant extends Sharable {
  readonly verbs: Verbs;
}

/** Milliseconds that a tenant is served after its last connection left. */
const LINGER = 30_000;

export class JwtDoorkeeper implements Doorkeeper {
  readonly #tokens: Tokens;
  readonly #serve: (namespace: Namespace) => Promise<Tenant>;
  readonly #health: Health;
  readonly #tenants: Shared<Tenant> = new Shared<Tenant>(LINGER);

  /** `serve` makes a tenant's broker; `health` is the bus's, whichever tenants there are. */
  constructor(tokens: Tokens, serve: (namespace: Namespace) => Promise<Tenant>, health: Health) {
    this.#tokens = tokens;
    this.#serve = serve;
    this.#health = health;
  }

  async admit({ password }: Credentials): Promise<Admission | Refused> {
    const bearer = await this.#tokens.read(password);
    if ("refused" in bearer) return bearer;
    const { user, namespace, expiresAt } = bearer;
    const { what, leave } = await this.#tenants.enter(namespace.org, () => this.#serve(namespace));
    return {
      verbs: what.verbs,
      user,
      vhosts: [namespace.org],
      expiresAt,
      renew: (secret) => this.#renew(bearer, secret),
      leave,
    };
  }

  /** A fresh token of the same user in the same organisation: a connection does not change hands. */
  async #renew(bearer: Bearer, secret: string): Promise<{ readonly expiresAt: number } | Refused> {
    const fresh = await this.#tokens.read(secret);
    if ("refused" in fresh) return fresh;
    if (fresh.namespace.org !== bearer.namespace.org) return { refused: "the fresh token is another organisation's" };
    if (fresh.user !== bearer.user) return { refused: "the fresh token is another user's" };
    return { expiresAt: fresh.expiresAt };
  }

  join(frontEnd: FrontEnd): void {
    this.#health.join(frontEnd);
  }

  leave(frontEnd: FrontEnd): void {
    this.#health.leave(frontEnd);
  }

  /** After the connections are gone: closes every tenant. */
  async close(): Promise<void> {
    await this.#tenants.close();
  }
}
