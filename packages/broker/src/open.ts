/**
 * Opening a broker: bus → stream → bucket → topology → listen, each step failing closed (HIP §5).
 *
 * Responsibilities: composing the parts and their stop in the reverse order. Used by: the package's index.
 * Separate because it is the only place that knows core, front end and NATS together.
 */
import { openBucket } from "@amqp/topology";
import { ROOT } from "@amqp/translator";
import { AnonymousDoorkeeper } from "./auth/anonymous.ts";
import { JwtDoorkeeper, type Tenant } from "./auth/jwt.ts";
import { openKeys } from "./auth/keys.ts";
import { type TokenRules, Tokens } from "./auth/tokens.ts";
import { BusListeners } from "./core/bus-listeners.ts";
import { Health } from "./core/health.ts";
import { type Namespace, NamespacedBus } from "./core/namespace.ts";
import { type BusOptions, openBus } from "./nats/bus.ts";
import { NatsPeers } from "./nats/peers.ts";
import { type BrokerHandle, handleOf, logOf, losing, openPlace, type Place, type PlaceOptions } from "./place.ts";

export interface OpenOptions extends PlaceOptions {
  /** Carries publishes, the topology and the API. */
  readonly publishing: BusOptions["publishing"];
  /** Carries deliveries and their acknowledgements: a slow reader there must not hold up publishes. */
  readonly delivering: BusOptions["delivering"];
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
  const { log, publishing, delivering, auth = { kind: "none" } } = options;
  const {
    stream = "AMQP",
    bucket: name = "amqp",
    busTimeout = 30_000,
    replicas,
    maxBytes,
    domain,
    unconfirmed,
  } = options;
  const tokens = auth.kind === "jwt" ? new Tokens(await openKeys(auth.keys, { log }), auth) : undefined;
  const listener = new BusListeners();
  const kept = { stream, root: ROOT, replicas, maxBytes, domain, unconfirmed };
  const bus = await openBus({ publishing, delivering, ...kept, busTimeout, listener, log });
  const bucket = await openBucket(publishing, {
    name,
    ...(replicas === undefined ? {} : { replicas }),
    ...(domain === undefined ? {} : { domain }),
  });
  const peers = new NatsPeers(publishing, name);
  const { lost, lose } = losing();
  const place: Place = { root: ROOT, bus, bucket, peers, log, lost: lose, listener, busTimeout };
  if (tokens === undefined) {
    const { broker, close } = await openPlace(place);
    return handleOf(new AnonymousDoorkeeper(broker), log, lost, async () => {
      await close();
      await bus.close();
    });
  }
  const peersOf = (org: string): NatsPeers => new NatsPeers(publishing, name, `@${org}.`);
  // Nobody is served yet: a tenant's broker is made when somebody of it comes.
  const health = new Health(log, busTimeout);
  listener.join(health);
  const doorkeeper = new JwtDoorkeeper(tokens, (namespace) => openTenant(place, peersOf, namespace), health);
  return handleOf(doorkeeper, log, lost, async () => {
    listener.leave(health);
    await doorkeeper.close();
    await bus.close();
  });
}

/** A tenant's broker, over its part of the stream and the bucket. */
async function openTenant(place: Place, peersOf: (org: string) => NatsPeers, namespace: Namespace): Promise<Tenant> {
  const { org, root, keys, cursors } = namespace;
  const { bus, bucket } = place;
  const log = logOf(place.log, { org });
  const { broker, close } = await openPlace({
    ...place,
    root,
    cursors,
    bus: new NamespacedBus(bus, namespace),
    bucket: bucket.within(keys),
    peers: peersOf(org),
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
