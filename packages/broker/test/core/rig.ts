/** A real bus and a broker on it, for tests of the verbs; several brokers in turn on one bus. */
import { type Bucket, openBucket } from "@amqp/topology";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { Broker } from "../../src/core/broker.ts";
import type { Bus } from "../../src/core/bus.ts";
import { Credit } from "../../src/core/credit.ts";
import { Health } from "../../src/core/health.ts";
import type { Log } from "../../src/core/log.ts";
import type { Delivery } from "../../src/core/message.ts";
import type { ExchangeSpec, QueueSpec, Session, Subscription } from "../../src/core/verbs.ts";
import { openBus } from "../../src/nats/bus.ts";
import { NatsPeers } from "../../src/nats/peers.ts";
import { isRefusal } from "../../src/refusals.ts";

const line = (level: string) => (fields: object, text: string) => {
  if (process.env.AMQP_TEST_LOG !== undefined) console.log(level, text, fields);
};
const silent: Log = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
const NO_PROPERTIES = new Uint8Array(2);

export interface Rig {
  readonly broker: Broker;
  readonly bus: Bus;
  /** As a clean stop. */
  close(): Promise<void>;
  /** As kill -9 does: the connections go and nothing is said. */
  drop(): Promise<void>;
}

/** What stands between a broker and its bus, for tests that delay it or end it. */
export interface Between {
  /** `amqp` unless said: a namespace's own. */
  readonly root?: string;
  bus?(bus: Bus): Bus;
  bucket?(bucket: Bucket): Bucket;
}

export async function openRig(url: string, between: Between = {}): Promise<Rig> {
  const connections: NatsConnection[] = [];
  for (let n = 0; n < 2; n++)
    connections.push(await connect({ servers: url, reconnectTimeWait: 50, maxReconnectAttempts: -1 }));
  const [publishing, delivering] = connections as [NatsConnection, NatsConnection];
  const health = new Health(silent, 30_000);
  const { root = "amqp" } = between;
  const bus = await openBus({ publishing, delivering, stream: "AMQP", root: "amqp", listener: health, log: silent });
  const bucket = await openBucket(publishing, { name: "amqp" });
  const broker = await Broker.open({
    root,
    bus: between.bus?.(bus) ?? bus,
    bucket: between.bucket?.(bucket) ?? bucket,
    peers: new NatsPeers(publishing, "amqp"),
    health,
    log: silent,
    lost: () => undefined,
    expirationOf: () => undefined,
  });
  const end = async (): Promise<void> => {
    await bus.close();
    await Promise.all(connections.map((connection) => connection.close()));
  };
  return {
    broker,
    bus,
    close: async () => {
      await broker.close();
      await end();
    },
    drop: async () => {
      await Promise.all(connections.map((connection) => connection.close()));
    },
  };
}

export const queueSpec = (name: string, more: Partial<QueueSpec> = {}): QueueSpec => ({
  name,
  durable: true,
  exclusive: false,
  autoDelete: false,
  type: "classic",
  arguments: "",
  ...more,
});

export const exchangeSpec = (name: string, kind: string, more: Partial<ExchangeSpec> = {}): ExchangeSpec => ({
  name,
  kind,
  durable: true,
  autoDelete: false,
  internal: false,
  arguments: "",
  ...more,
});

/** Publishes and waits for the bus's answer. */
export async function publish(broker: Broker, exchange: string, key: string, text: string): Promise<void> {
  const route = broker.route(exchange, key);
  if (isRefusal(route)) throw new Error(route.text);
  await new Promise<void>((resolve, reject) => {
    const sink = {
      published: (_: number, outcome: string) => (outcome === "stored" ? resolve() : reject(new Error(outcome))),
    };
    broker.publish(route, NO_PROPERTIES, [Buffer.from(text)], sink, 0);
  });
}

/** Takes and acknowledges everything ready. */
export async function drain(broker: Broker, session: Session, queue: string): Promise<string[]> {
  const texts: string[] = [];
  for (;;) {
    const got = await broker.get(session, queue, { acknowledge: true });
    if (isRefusal(got)) throw new Error(got.text);
    if (got.delivery === undefined) return texts;
    texts.push(Buffer.from(got.delivery.body).toString());
    got.delivery.settle("complete");
  }
}

/** A consumer that keeps what it was given. */
export class Taker {
  readonly deliveries: Delivery[] = [];
  cancels = 0;
  subscription: Subscription | undefined;

  static async on(broker: Broker, session: Session, queue: string, prefetch = 100, exclusive = false): Promise<Taker> {
    const taker = new this();
    const subscription = await broker.subscribe(session, queue, taker, {
      acknowledge: true,
      exclusive,
      credits: [new Credit(prefetch)],
    });
    if (isRefusal(subscription)) throw new Error(subscription.text);
    taker.subscription = subscription;
    return taker;
  }

  deliver(delivery: Delivery): void {
    this.deliveries.push(delivery);
  }

  cancelled(): void {
    this.cancels++;
  }
}
