/**
 * The tenants that are served here: one broker each, made at its first login and closed a while after its last
 * connection left.
 *
 *   opening ──► open, somebody is in ⇄ open, nobody is in ── a while, and nothing would be lost ──► closing ──► (none)
 *      └─ it cannot be served: the login fails, the next one tries again
 *
 * Used by: jwt. Separate because whoever decides who may come in need not know what a tenant costs: a mirror, a
 * watch, two leases, its consumers.
 */
import type { Namespace } from "../core/namespace.ts";
import type { Verbs } from "../core/verbs.ts";

/** A tenant's broker. */
export interface Served {
  readonly verbs: Verbs;
  /** Whether something is there that is not durable: gone if this was the last replica, as after a stop of its fleet. */
  readonly holdsTransient: boolean;
  /** Never rejects. */
  close(): Promise<void>;
}

interface Tenant {
  readonly served: Promise<Served>;
  members: number;
  timer: NodeJS.Timeout | undefined;
  closing: Promise<void> | undefined;
}

export interface TenantsOptions {
  serve(namespace: Namespace): Promise<Served>;
  /** Milliseconds that a tenant stays after its last connection left; 30,000 by default. */
  readonly linger?: number;
}

const LINGER = 30_000;

export class Tenants {
  readonly #options: TenantsOptions;
  readonly #tenants: Map<string, Tenant> = new Map<string, Tenant>();
  #closed: boolean = false;

  constructor(options: TenantsOptions) {
    this.#options = options;
  }

  /** How many there are. */
  get size(): number {
    return this.#tenants.size;
  }

  /** One more connection of that tenant, until {@link leave}. Rejects where it cannot be served. */
  async enter(namespace: Namespace): Promise<Verbs> {
    for (;;) {
      if (this.#closed) throw new Error("the broker is stopping");
      const present = this.#tenants.get(namespace.org);
      if (present?.closing !== undefined) {
        await present.closing;
        continue;
      }
      const tenant = present ?? this.#open(namespace);
      clearTimeout(tenant.timer);
      tenant.members++;
      const { verbs } = await tenant.served;
      return verbs;
    }
  }

  leave(namespace: Namespace): void {
    const tenant = this.#tenants.get(namespace.org);
    if (tenant === undefined || --tenant.members > 0) return;
    this.#wait(namespace, tenant);
  }

  /** After the connections are gone: closes all. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(
      [...this.#tenants].map(async ([, tenant]) => {
        clearTimeout(tenant.timer);
        await (tenant.closing ?? tenant.served.then((served) => served.close()).catch(() => undefined));
      }),
    );
    this.#tenants.clear();
  }

  #open(namespace: Namespace): Tenant {
    const served = this.#options.serve(namespace);
    const tenant: Tenant = { served, members: 0, timer: undefined, closing: undefined };
    this.#tenants.set(namespace.org, tenant);
    // All that wait for it are refused; whoever comes next tries again.
    served.catch(() => this.#forget(namespace, tenant));
    return tenant;
  }

  #wait(namespace: Namespace, tenant: Tenant): void {
    tenant.timer = setTimeout(() => void this.#retire(namespace, tenant), this.#options.linger ?? LINGER);
    tenant.timer.unref();
  }

  async #retire(namespace: Namespace, tenant: Tenant): Promise<void> {
    const served = await tenant.served;
    if (tenant.members > 0 || this.#closed || tenant.closing !== undefined) return;
    if (served.holdsTransient) {
      this.#wait(namespace, tenant);
      return;
    }
    tenant.closing = served.close().finally(() => this.#forget(namespace, tenant));
    await tenant.closing;
  }

  #forget(namespace: Namespace, tenant: Tenant): void {
    if (this.#tenants.get(namespace.org) === tenant) this.#tenants.delete(namespace.org);
  }
}
