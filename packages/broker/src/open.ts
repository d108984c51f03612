/**
 * Opening a broker: bus → stream → bucket → topology → listen, each step failing closed (HIP §5).
 *
 * Responsibilities: composing the parts and their stop in the reverse order. Used by: the package's index.
 * Separate because it is the only place that knows core, front end and NATS together.
 */
import { openBucket } from "@amqp/topology";
import { ROOT } from "@amqp/translator";
import type { Counters } from "./amqp091/census.ts";
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
<<<<<<< HEAD
=======
  /** The stream's name; `AMQP` by default. */
  readonly stream?: string;
  /** The key-value bucket's name; `amqp` by default. */
  readonly bucket?: string;
  /** Replicas of stream and bucket on a NATS cluster; by default 1 of new ones, and existing ones keep theirs. */
  readonly replicas?: number;
  /** Octets that the stream may take; unlimited by default. When full, publishes are refused, nothing is dropped. */
  readonly maxBytes?: number;
  readonly domain?: string;
  /** Milliseconds that the bus may be away before connections are closed; 30,000 by default. */
  readonly busTimeout?: number;
  /** Octets of publishes that the bus has not confirmed, above which publishers are not read; 32 MiB by default. */
  readonly unconfirmed?: number;
>>>>>>> main
  /** Who may connect; by default anybody. */
  readonly auth?: AuthOptions;
}

/**
 * Who may connect. `none`: anybody, to one flat namespace. `jwt`: who bears a token of an issuer, to the namespace of
 * the token's organisation; `keys` is where the issuer's key set lies, a URL or a file's path. For logins that are the
 * bus's own see `openAccounts`.
 */
export type AuthOptions = { readonly kind: "none" } | ({ readonly kind: "jwt"; readonly keys: string } & TokenRules);

<<<<<<< HEAD
=======
export interface BrokerHandle {
  /** Opens a port; rejects where it is taken. */
  listen(options: ListenOptions): Promise<Listening>;
  /** What its ports have seen and refused, since it was opened; plain numbers, to be shown wherever one likes. */
  counters(): Counters;
  /** Stops accepting, closes every connection with 320 and `reason`, requeues what they held, leaves the bus clean. */
  close(reason?: string): Promise<void>;
  /**
   * Resolves when the topology cannot be followed any more (its bucket was deleted or set back): clients are disconnected
   * and the ports closed by then. Close it, and open another one.
   */
  readonly lost: Promise<Error>;
}

>>>>>>> main
export async function openBroker(options: OpenOptions): Promise<BrokerHandle> {
  const { log, publishing, delivering, auth = { kind: "none" } } = options;
  const { stream = "AMQP", bucket: name = "amqp", busTimeout = 30_000, replicas, maxBytes, domain } = options;
  const tokens = auth.kind === "jwt" ? new Tokens(await openKeys(auth.keys, { log }), auth) : undefined;
  const listener = new BusListeners();
<<<<<<< HEAD
  const kept = { stream, root: ROOT, replicas, maxBytes, domain };
  const bus = await openBus({ publishing, delivering, ...kept, busTimeout, listener, log });
  const bucket = await openBucket(publishing, {
    name,
    ...(replicas === undefined ? {} : { replicas }),
    ...(domain === undefined ? {} : { domain }),
=======
  const common = { publishing, delivering, stream, root: ROOT, busTimeout, listener, log };
  const unconfirmed = options.unconfirmed === undefined ? {} : { unconfirmed: options.unconfirmed };
  const bus = await openBus({ ...common, ...unconfirmed, ...replicas, ...maxBytes, ...domain });
  const bucket = await openBucket(publishing, { name, ...replicas, ...domain });
  const peers = new NatsPeers(publishing, name);
  let lose: (error: Error) => void = () => undefined;
  const lost = new Promise<Error>((resolve) => {
    lose = resolve;
>>>>>>> main
  });
  const peers = new NatsPeers(publishing, name);
  const { lost, lose } = losing();
  const place: Place = { root: ROOT, bus, bucket, peers, log, lost: lose, listener, busTimeout };
<<<<<<< HEAD
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
=======
  const { doorkeeper, close } = await (tokens === undefined
    ? openFlat(place)
    : openTenants(place, publishing, name, tokens));
  const server = new Server(doorkeeper, log);
  return {
    listen: (where) => server.listen(where),
    counters: () => server.counters(),
    lost,
    close: async (reason = "the broker is stopping") => {
      await server.close(reason);
      await close();
      await bus.close();
    },
  };
}

/** Where a broker is opened: the flat place, or a namespace's part of it. */
interface Place extends Omit<BrokerOptions, "health" | "expirationOf"> {
  readonly listener: BusListeners;
  readonly busTimeout: number;
  /** What stands before its queues in cursor names; nothing in the flat place. */
  readonly cursors?: string;
}

interface Opened {
  readonly doorkeeper: Doorkeeper;
  close(): Promise<void>;
}

async function openFlat(place: Place): Promise<Opened> {
  const { broker, close } = await serve(place);
  return { doorkeeper: new AnonymousDoorkeeper(broker), close };
}

/** Nobody is served yet: each tenant's broker is made when somebody of it comes. */
async function openTenants(
  place: Place,
  publishing: BusOptions["publishing"],
  bucketName: string,
  tokens: Tokens,
): Promise<Opened> {
  const { bus, bucket, listener, busTimeout, log } = place;
  const health = new Health(log, busTimeout);
  listener.join(health);
  const serveTenant = async (namespace: Namespace): Promise<Served> => {
    const { org, root, keys, cursors } = namespace;
    const { broker, close } = await serve({
      ...place,
      root,
      cursors,
      bus: new NamespacedBus(bus, namespace),
      bucket: bucket.within(keys),
      peers: new NatsPeers(publishing, bucketName, `@${org}.`),
      log: logOf(log, org),
    });
    log.info({ org }, "a tenant is served");
    return {
      verbs: broker,
      get holdsTransient() {
        return broker.holdsTransient;
      },
      close: async () => {
        await close();
        log.info({ org }, "a tenant is served no more: nobody of it is here");
      },
    };
  };
  const tenants = new Tenants({ serve: serveTenant });
  return {
    doorkeeper: new JwtDoorkeeper(tokens, tenants, health),
    close: async () => {
      listener.leave(health);
      await tenants.close();
    },
  };
}

/** One broker, told of the bus for as long as it is there. */
async function serve(place: Place): Promise<{ readonly broker: Broker; close(): Promise<void> }> {
  const { listener, log, busTimeout, cursors } = place;
  const health = new Health(log, busTimeout);
  listener.join(health, cursors);
  const end = (): void => listener.leave(health);
  const broker = await Broker.open({ ...place, health, expirationOf }).catch((error: unknown) => {
    end();
    throw error;
>>>>>>> main
  });
}

/** A tenant's broker, over its part of the stream and the bucket. */
async function openTenant(place: Place, peersOf: (org: string) => NatsPeers, namespace: Namespace): Promise<Tenant> {
  const { org, root, keys } = namespace;
  const { bus, bucket } = place;
  const log = logOf(place.log, { org });
  const { broker, close } = await openPlace({
    ...place,
    root,
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
