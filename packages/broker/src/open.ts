/**
 * Opening a broker: bus → stream → bucket → topology → listen, each step failing closed (HIP §5).
 *
 * Responsibilities: composing the parts and their stop in the reverse order. Used by: the package's index.
 * Separate because it is the only place that knows core, front end and NATS together.
 */
import { peekProperty } from "@amqp/codec";
import { openBucket } from "@amqp/topology";
import { ROOT } from "@amqp/translator";
import { Broker } from "./core/broker.ts";
import { Health } from "./core/health.ts";
import type { Log } from "./core/log.ts";
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
  readonly log: Log;
}

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
  const { log, publishing, delivering } = options;
  const busTimeout = options.busTimeout ?? 30_000;
  const replicas = options.replicas === undefined ? {} : { replicas: options.replicas };
  const domain = options.domain === undefined ? {} : { domain: options.domain };
  const health = new Health(log, busTimeout);
  const bus = await openBus({
    publishing,
    delivering,
    stream: options.stream ?? "AMQP",
    root: ROOT,
    ...replicas,
    ...(options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes }),
    ...domain,
    busTimeout,
    listener: health,
    log,
  });
  const bucket = await openBucket(publishing, { name: options.bucket ?? "amqp", ...replicas, ...domain });
  const peers = new NatsPeers(publishing, options.bucket ?? "amqp");
  let tell: (error: Error) => void = () => undefined;
  const lost = new Promise<Error>((resolve) => {
    tell = resolve;
  });
  const broker = await Broker.open({ bus, bucket, peers, health, log, lost: tell, expirationOf });
  const server = new Server(broker, log);
  return {
    listen: (where) => server.listen(where),
    lost,
    close: async (reason = "the broker is stopping") => {
      await server.close(reason);
      await broker.close();
      await bus.close();
    },
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
