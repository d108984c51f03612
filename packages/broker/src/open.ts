/**
 * Opening a broker: bus → stream → bucket → topology → listen, each step failing closed (HIP §5).
 *
 * Responsibilities: composing the parts and their stop in the reverse order. Used by: the package's index.
 * Separate because it is the only place that knows core, front end and NATS together.
 */
import { peekProperty } from "@amqp/codec";
import { openBucket } from "@amqp/topology";
import { ROOT } from "@amqp/translator";
import { AnonymousDoorkeeper } from "./auth/anonymous.ts";
import { JwtDoorkeeper } from "./auth/jwt.ts";
import { openKeys } from "./auth/keys.ts";
import { type Served, Tenants } from "./auth/tenants.ts";
import { type TokenRules, Tokens } from "./auth/tokens.ts";
import { Broker, type BrokerOptions } from "./core/broker.ts";
import { BusListeners } from "./core/bus-listeners.ts";
import type { Doorkeeper } from "./core/doorkeeper.ts";
import { Health } from "./core/health.ts";
import type { Log } from "./core/log.ts";
import { type Namespace, NamespacedBus } from "./core/namespace.ts";
import { type BusOptions, openBus } from "./nats/bus.ts";
import { NatsPeers } from "./nats/peers.ts";
import { type Listening, type ListenOptions, Server } from "./server.ts";

export interface OpenOptions {
  /** Carries publishes, the topology and the API. */
  readonly publishing: BusOptions["publishing"];
  /** Carries deliveries and their acknowledgements: a slow reader there must not hold up publishes. */
  readonly delivering: BusOptions["delivering"];
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
  /** Who may connect; by default anybody. */
  readonly auth?: AuthOptions;
  readonly log: Log;
}

/**
 * Who may connect. `none`: anybody, to one flat namespace. `jwt`: who bears a token of an issuer, to the namespace of
 * the token's organisation; `keys` is where the issuer's key set lies, a URL or a file's path.
 */
export type AuthOptions = { readonly kind: "none" } | ({ readonly kind: "jwt"; readonly keys: string } & TokenRules);

export interface BrokerHandle {
  /** Opens a port; rejects where it is taken. */
  listen(options: ListenOptions): Promise<Listening>;
  /** Stops accepting, closes every connection with 320 and `reason`, requeues what they held, leaves the bus clean. */
  close(reason?: string): Promise<void>;
  /**
   * Resolves when the topology cannot be followed any more (its bucket was deleted or set back): clients are disconnected
   * and the ports closed by then. Close it, and open another one.
   */
  readonly lost: Promise<Error>;
}

export async function openBroker(options: OpenOptions): Promise<BrokerHandle> {
  const { log, publishing, delivering, auth = { kind: "none" } } = options;
  const { stream = "AMQP", bucket: name = "amqp", busTimeout = 30_000 } = options;
  const replicas = options.replicas === undefined ? {} : { replicas: options.replicas };
  const domain = options.domain === undefined ? {} : { domain: options.domain };
  const maxBytes = options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes };
  const tokens = auth.kind === "jwt" ? new Tokens(await openKeys(auth.keys, { log }), auth) : undefined;
  const listener = new BusListeners();
  const common = { publishing, delivering, stream, root: ROOT, busTimeout, listener, log };
  const bus = await openBus({ ...common, ...replicas, ...maxBytes, ...domain });
  const bucket = await openBucket(publishing, { name, ...replicas, ...domain });
  const peers = new NatsPeers(publishing, name);
  let lose: (error: Error) => void = () => undefined;
  const lost = new Promise<Error>((resolve) => {
    lose = resolve;
  });
  const place: Place = { root: ROOT, bus, bucket, peers, log, lost: lose, listener, busTimeout };
  const { doorkeeper, close } = await (tokens === undefined
    ? openFlat(place)
    : openTenants(place, publishing, name, tokens));
  const server = new Server(doorkeeper, log);
  return {
    listen: (where) => server.listen(where),
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
    const { org, root, keys } = namespace;
    const { broker, close } = await serve({
      ...place,
      root,
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
  const { listener, log, busTimeout } = place;
  const health = new Health(log, busTimeout);
  listener.join(health);
  const end = (): void => listener.leave(health);
  const broker = await Broker.open({ ...place, health, expirationOf }).catch((error: unknown) => {
    end();
    throw error;
  });
  return {
    broker,
    close: async () => {
      await broker.close();
      end();
    },
  };
}

/** Says of every line whose it is. */
function logOf(log: Log, org: string): Log {
  return {
    debug: (fields, text) => log.debug({ org, ...fields }, text),
    info: (fields, text) => log.info({ org, ...fields }, text),
    warn: (fields, text) => log.warn({ org, ...fields }, text),
    error: (fields, text) => log.error({ org, ...fields }, text),
  };
}

/** The `expiration` property in milliseconds; checked at publish, so what is no number came from elsewhere. */
function expirationOf(properties: Uint8Array): number | undefined {
  let text: string | undefined;
  try {
    text = peekProperty(properties, "expiration");
  } catch {
    return undefined; // a native publisher's, and no properties at all
  }
  if (text === undefined) return undefined;
  const milliseconds = Number(text);
  return Number.isFinite(milliseconds) && milliseconds >= 0 ? milliseconds : undefined;
}
