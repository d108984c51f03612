/**
 * Opening a broker: its ground on the bus → topology → who may come in → listen, each step failing closed (HIP §5).
 *
 * Responsibilities: composing the parts and their stop in the reverse order. Used by: the package's index.
 * Separate because, with open-accounts, it is the only place that knows core, front end and NATS together.
 */
import { AnonymousDoorkeeper } from "./auth/anonymous.ts";
import { JwtDoorkeeper, type Tenant } from "./auth/jwt.ts";
import { openKeys } from "./auth/keys.ts";
import { type TokenRules, Tokens } from "./auth/tokens.ts";
import { Health } from "./core/health.ts";
import { type Namespace, NamespacedBus } from "./core/namespace.ts";
import { type Ground, openGround } from "./ground.ts";
import type { Connections } from "./nats/links.ts";
import {
  type BrokerHandle,
  booting,
  handleOf,
  logOf,
  losing,
  openPlace,
  orClose,
  type Place,
  type PlaceOptions,
} from "./place.ts";

export interface OpenOptions extends PlaceOptions {
  /** Carries publishes, the topology and the API. */
  readonly publishing: Connections["publishing"];
  /** Carries deliveries and their acknowledgements: a slow reader there must not hold up publishes. */
  readonly delivering: Connections["delivering"];
  /** Who may connect; by default anybody. */
  readonly auth?: AuthOptions;
}

/**
 * Who may connect. `none`: anybody, to one flat namespace. `jwt`: who bears a token of an issuer, to the namespace of
 * the token's organisation; `keys` is where the issuer's key set lies, a URL or a file's path. For logins that are the
 * bus's own see `openAccounts`.
 */
export type AuthOptions = { readonly kind: "none" } | ({ readonly kind: "jwt"; readonly keys: string } & TokenRules);

export async function openBroker(options: OpenOptions): Promise<BrokerHandle> {
  const { log, auth = { kind: "none" } } = options;
  const tokens = auth.kind === "jwt" ? new Tokens(await openKeys(auth.keys, { log }), auth) : undefined;
  const { lost, lose } = losing();
  const { place, peers } = await openGround(options, options, log, lose);
  const { bus, listener, busTimeout } = place;
  if (tokens === undefined) {
    const { broker, close } = await orClose(booting(openPlace(place)), bus);
    return handleOf(new AnonymousDoorkeeper(broker), log, lost, async () => {
      await close();
      await bus.close();
    });
  }
  // Nobody is served yet: a tenant's broker is made when somebody of it comes.
  const health = new Health(log, busTimeout);
  listener.join(health);
  const doorkeeper = new JwtDoorkeeper(tokens, (namespace) => openTenant(place, peers, namespace), health);
  return handleOf(doorkeeper, log, lost, async () => {
    listener.leave(health);
    await doorkeeper.close();
    await bus.close();
  });
}

/** A tenant's broker, over its part of the stream and the bucket. */
async function openTenant(place: Place, peers: Ground["peers"], namespace: Namespace): Promise<Tenant> {
  const { org, root, keys, cursors } = namespace;
  const { bus, bucket } = place;
  const log = logOf(place.log, { org });
  const { broker, close } = await openPlace({
    ...place,
    root,
    cursors,
    bus: new NamespacedBus(bus, namespace),
    bucket: bucket.within(keys),
    peers: peers(`@${org}.`),
    log,
  });
  log.info({}, "a tenant is served");
  return {
    verbs: broker,
    get holdsTransient() {
      return broker.holdsTransient;
    },
    close: async () => {
      await close();
      log.info({}, "a tenant is served no more: nobody of it is here");
    },
  };
}
