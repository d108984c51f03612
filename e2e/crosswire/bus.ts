// The gateway's bus seen by a program that knows NATS and nothing of AMQP: its stream, its bucket, its consumers.
// Used by e2e/crosswire, and by the model and durability tests to ask whether anything is left in the stream. Separate
// so that the names of stream and bucket (HIP §1) are written once.
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ConsumerConfig,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StreamConfig,
} from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { connect, type NatsConnection } from "@nats-io/transport-node";

const STREAM = "AMQP";
const BUCKET = "amqp";
/** The one message that always stands in the log (packages/broker/src/nats/keeper.ts). */
const KEEPER = "amqp.$keeper";

/** A native client of the bus. */
export interface Bus {
  readonly nats: NatsConnection;
  readonly stream: JetStreamClient;
  readonly manager: JetStreamManager;
  streamConfig(): Promise<StreamConfig>;
  /** Messages in the stream, without the one that always stands there. */
  messages(): Promise<number>;
  /** The consumer of a queue. */
  consumer(queue: string): Promise<ConsumerConfig>;
  /** The consumer's filters, sorted, in whichever of the two fields they stand. */
  filters(queue: string): Promise<readonly string[]>;
  /** Names of all queues' consumers. */
  consumers(): Promise<readonly string[]>;
  bucket(): Promise<KV>;
  /** The topology's keys that contain this text, sorted. */
  keys(containing: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Connects to the bus. */
export async function openBus(url: string): Promise<Bus> {
  const nats = await connect({ servers: url });
  const stream = jetstream(nats);
  const manager = await jetstreamManager(nats);
  const consumer = async (queue: string): Promise<ConsumerConfig> =>
    (await manager.consumers.info(STREAM, queue)).config;
  const bucket = (): Promise<KV> => new Kvm(stream).open(BUCKET);
  return {
    nats,
    stream,
    manager,
    consumer,
    bucket,
    streamConfig: async () => (await manager.streams.info(STREAM)).config,
    messages: async () => {
      const { state } = await manager.streams.info(STREAM, { subjects_filter: KEEPER });
      return state.messages - (state.subjects?.[KEEPER] ?? 0);
    },
    filters: async (queue) => {
      const { filter_subject, filter_subjects } = await consumer(queue);
      return [...(filter_subjects ?? (filter_subject === undefined ? [] : [filter_subject]))].sort();
    },
    consumers: async () => {
      const names: string[] = [];
      for await (const { name } of manager.consumers.list(STREAM)) if (!name.startsWith("$")) names.push(name);
      return names.sort(ascending);
    },
    keys: async (containing) => {
      const keys: string[] = [];
      for await (const key of await (await bucket()).keys()) if (key.includes(containing)) keys.push(key);
      return keys.sort(ascending);
    },
    close: async () => await nats.close(),
  };
}

/** Waits until the stream holds no message; throws with their number where that takes longer. */
export async function untilStreamEmpty(url: string, milliseconds: number): Promise<void> {
  const bus = await openBus(url);
  try {
    const end = Date.now() + milliseconds;
    for (;;) {
      const messages = await bus.messages();
      if (messages === 0) return;
      if (Date.now() > end) throw new Error(`${messages} messages are left in the stream after ${milliseconds} ms`);
      await sleep(50);
    }
  } finally {
    await bus.close();
  }
}

function ascending(a: string, b: string): number {
  return a < b ? -1 : 1;
}
