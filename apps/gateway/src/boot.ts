/**
 * Boot and stop. The order is HIP §5's: the bus, the stream and the topology's bucket, then the listener, so that a port
 * that accepts is a broker that keeps. A step that fails undoes those before it and throws one line with a remedy. Used
 * by main.ts, by each worker, and by programs that run a gateway inside themselves.
 */
import { type BrokerHandle, openAccounts, openBroker, type PlaceOptions } from "@amqp/broker";
import { readAccounts } from "./accounts.ts";
import { readCertificate } from "./certificate.ts";
import type { Config } from "./config.ts";
import { EmbeddedServer } from "./embedded.ts";
import type { Logger } from "./log.ts";
import { type BusAddress, type BusConnections, checkLogins, connectBus, dialer, explain } from "./nats.ts";
import { findNatsServer } from "./nats-server.ts";
import { openPorts, type Ports, probePorts } from "./ports.ts";
import { Steps } from "./steps.ts";
import { bootWorkers } from "./workers.ts";

/** A gateway that serves. Its ports are the configured ones unless those were 0. */
export interface Gateway extends Ports {
  readonly host: string;
  /** The servers of the bus, without credentials. */
  readonly bus: readonly string[];
  readonly embedded: boolean;
  /** How many processes serve the port. */
  readonly workers: number;
  /**
   * Resolves when it can serve no more though nobody asked it to stop (its topology is gone): stop it and start another
   * one. Its clients are disconnected already. Workers are started anew by themselves.
   */
  readonly lost: Promise<Error>;
  /**
   * Stops accepting, closes connections with 320, hands back what they held, drains the bus and stops the embedded
   * server, in this order. Any number of calls is one stop; it never rejects.
   */
  stop(): Promise<void>;
}

/**
 * Boots a gateway. With several workers these are processes that `node:cluster` makes of this one.
 * @param signal aborted: boot ends at the next step, everything undone, and the signal's reason is thrown
 * @throws BootError
 */
export async function boot(config: Config, log: Logger, signal?: AbortSignal): Promise<Gateway> {
  const steps = new Steps(log, signal);
  try {
    const { tls } = config;
    // What is wrong with it is known before anything is started.
    if (tls !== undefined) await steps.take(() => readCertificate(tls));
    const bus = await startBus(config, log, steps);
    const served = await (config.workers > 1 ? bootWorkers : bootAlone)({ ...config, bus }, log, steps);
    steps.done();
    const { host, workers } = config;
    const embedded = config.bus.kind === "embedded";
    return { ...served, host, workers, bus: bus.servers, embedded, stop: () => steps.undo() };
  } catch (error) {
    await steps.undo();
    throw error;
  }
}

/** A configuration whose bus runs. */
export interface ConfigOnBus extends Config {
  readonly bus: BusAddress & { readonly kind: "servers" };
}

/** What is known once the port accepts. */
export type Served = Ports & Pick<Gateway, "lost">;

async function bootAlone(config: ConfigOnBus, log: Logger, steps: Steps): Promise<Served> {
  const connect = (bus: BusAddress): Promise<BusConnections> =>
    steps.takeLong(
      () => connectBus(bus, log, config.busTimeout),
      (opened) => opened.close(),
    );
  const open = await (config.auth.kind === "nats" ? overAccounts : overOne)(config, log, connect);
  const broker = await steps.takeLong(
    () => open().catch(told(config)),
    (opened) => opened.close(),
  );
  return { ...(await openPorts(config, broker, log, steps)), lost: broker.lost };
}

type Open = () => Promise<BrokerHandle>;
type Connect = (bus: BusAddress) => Promise<BusConnections>;

/** One login to the bus, and whoever may connect by our own rules. */
async function overOne({ auth, bus, ...config }: ConfigOnBus, log: Logger, connect: Connect): Promise<Open> {
  if (auth.kind === "nats") throw new Error("logins that are the bus's have no one login of ours");
  const { publishing, delivering } = await connect(bus);
  return () => openBroker({ ...placeOptions({ ...config, auth, bus }), publishing, delivering, auth, log });
}

/** A login in each account, and whoever the bus lets in. */
async function overAccounts(config: ConfigOnBus, log: Logger, connect: Connect): Promise<Open> {
  const { auth, bus } = config;
  if (auth.kind !== "nats") throw new Error("accounts are the bus's");
  const accounts = new Map<string, BusConnections>();
  for (const [account, login] of await readAccounts(auth.accountsFile)) {
    accounts.set(account, await connect({ ...bus, login }));
  }
  await checkLogins(bus);
  return () => openAccounts({ ...placeOptions(config), accounts, dial: dialer(bus, log), log });
}

/** The bus: the servers that were named, or a server of our own, which then is started. */
async function startBus(config: Config, log: Logger, steps: Steps): Promise<ConfigOnBus["bus"]> {
  const { bus } = config;
  if (bus.kind === "servers") return bus;
  await steps.take(() => probePorts(config));
  const found = await steps.take(() => findNatsServer({ tell: (line) => log.info(line) }));
  log.debug({ ...found }, `nats-server ${found.version} from ${found.from}`);
  const { url } = await steps.take(
    () => EmbeddedServer.start({ binary: found.path, port: bus.port, dataDir: bus.dataDir, log }),
    (embedded) => embedded.stop(),
  );
  return { kind: "servers", servers: [url], tls: undefined, login: { kind: "none" }, domain: undefined };
}

function placeOptions(config: ConfigOnBus): Omit<PlaceOptions, "log"> {
  const { stream, bucket, busTimeout, unconfirmed, bus } = config;
  return {
    stream,
    bucket,
    busTimeout,
    unconfirmed,
    ...(config.streamReplicas === undefined ? {} : { replicas: config.streamReplicas }),
    ...(config.streamMaxBytes === undefined ? {} : { maxBytes: config.streamMaxBytes }),
    ...(bus.domain === undefined ? {} : { domain: bus.domain }),
  };
}

function told({ bus, stream, bucket }: ConfigOnBus): (error: unknown) => never {
  return (error) => {
    throw explain(error, bus.servers, `the stream ${stream} and the bucket ${bucket}`);
  };
}
