/**
 * Boot and stop. The order is HIP §5's: the bus, the stream and the topology's bucket, then the listener, so that a port
 * that accepts is a broker that keeps. A step that fails undoes those before it and throws one line with a remedy. Used
 * by main.ts, and by programs that run a gateway inside themselves.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type BrokerHandle, type OpenOptions, openBroker } from "@amqp/broker";
import { BootError } from "./boot-error.ts";
import type { Config } from "./config.ts";
import { EmbeddedServer } from "./embedded.ts";
import type { Logger } from "./log.ts";
import { type BusAddress, connectBus, explain } from "./nats.ts";
import { findNatsServer } from "./nats-server.ts";
import { readVersion } from "./version.ts";

/** A gateway that serves. */
export interface Gateway {
  readonly host: string;
  /** The port it took; the configured one unless that was 0. */
  readonly port: number;
  /** The servers of the bus, without credentials. */
  readonly bus: readonly string[];
  readonly embedded: boolean;
  /**
   * Stops accepting, closes connections with 320, hands back what they held, drains the bus and stops the embedded
   * server, in this order. Any number of calls is one stop; it never rejects.
   */
  stop(): Promise<void>;
}

/** What a step that succeeded has to be undone by. */
type Undo = () => Promise<unknown>;

/**
 * Boots a gateway.
 * @param signal aborted: boot ends at the next step, everything undone, and the signal's reason is thrown
 * @throws BootError
 */
export async function boot(config: Config, log: Logger, signal?: AbortSignal): Promise<Gateway> {
  const undos: Undo[] = [];
  const step = async <T>(start: () => Promise<T>, undo?: (value: T) => Promise<unknown>): Promise<T> => {
    signal?.throwIfAborted();
    const value = await start();
    if (undo !== undefined) undos.push(() => undo(value));
    return value;
  };
  try {
    const address = await step(() => busAddress(config, log, undos));
    const { publishing, delivering } = await step(
      () => connectBus(address, log),
      (opened) => opened.close(),
    );
    const broker = await step(
      () => openBroker({ ...brokerOptions(config, address), publishing, delivering, log }).catch(told(config, address)),
      (opened) => opened.close(),
    );
    const { port } = await step(() => broker.listen(listenOptions(config)).catch(portRefused(config)));
    signal?.throwIfAborted();
    let stopped: Promise<void> | undefined;
    const stop = (): Promise<void> => {
      stopped ??= unwind(undos, log);
      return stopped;
    };
    return { host: config.host, port, bus: address.servers, embedded: config.bus.kind === "embedded", stop };
  } catch (error) {
    await unwind(undos, log);
    throw error;
  }
}

/** The bus: the servers that were named, or a server of our own, which then is started. */
async function busAddress(config: Config, log: Logger, undos: Undo[]): Promise<BusAddress> {
  const { bus } = config;
  if (bus.kind === "servers") return bus;
  const found = await findNatsServer({ tell: (line) => log.info(line) });
  log.debug({ ...found }, `nats-server ${found.version} from ${found.from}`);
  const embedded = await EmbeddedServer.start({ binary: found.path, port: bus.port, dataDir: bus.dataDir, log });
  undos.push(() => embedded.stop());
  return { servers: [embedded.url], tls: false, login: { kind: "none" }, domain: undefined };
}

function brokerOptions(config: Config, address: BusAddress): Omit<OpenOptions, "publishing" | "delivering" | "log"> {
  return {
    stream: config.stream,
    bucket: config.bucket,
    ...(config.streamReplicas === undefined ? {} : { replicas: config.streamReplicas }),
    ...(config.streamMaxBytes === undefined ? {} : { maxBytes: config.streamMaxBytes }),
    ...(address.domain === undefined ? {} : { domain: address.domain }),
  };
}

function listenOptions({ host, port }: Config): Parameters<BrokerHandle["listen"]>[0] {
  return { host, port, version: readVersion() };
}

function told(config: Config, address: BusAddress): (error: unknown) => never {
  return (error) => {
    throw explain(error, address.servers, `the stream ${config.stream} and the bucket ${config.bucket}`);
  };
}

function portRefused({ host, port }: Config): (error: unknown) => never {
  return (error) => {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const because = { cause: error };
    const another = "set CLOUD_AMQP_PORT to another port (0 takes any free one)";
    if (code === "EADDRINUSE") {
      throw new BootError(`port ${port} on ${host} is taken`, `stop what listens there, or ${another}`, because);
    }
    if (code === "EACCES") throw new BootError(`port ${port} may not be used by this user`, another, because);
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
      throw new BootError(`${host} is no address of this machine`, "correct AMQP_HOST", because);
    }
    throw error;
  };
}

/** What one undoing may take, in milliseconds: the next ones still have to be done before an orchestrator kills us. */
const PATIENCE = 10_000;

/** Undoes what was done, last first. What cannot be undone is logged: the rest still has to be. */
async function unwind(undos: Undo[], log: Logger): Promise<void> {
  for (let undo = undos.pop(); undo !== undefined; undo = undos.pop()) {
    const late = new AbortController();
    try {
      await Promise.race([
        undo(),
        sleep(PATIENCE, undefined, { signal: late.signal }).then(() => {
          throw new Error(`it took longer than ${PATIENCE} ms`);
        }),
      ]);
    } catch (error) {
      log.error({ err: error }, "stopping went wrong");
    } finally {
      late.abort();
    }
  }
}
