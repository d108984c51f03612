// Several gateways, each a process of its own, on one nats-server: what must look like one broker.
// Every test of e2e/replicas starts its fleet here and speaks to its replicas by their number. Separate from the harness
// because only these tests have more than one gateway.
import type { Socket } from "node:net";
import {
  type Channel,
  type ChannelModel,
  type ConfirmChannel,
  type ConsumeMessage,
  connect as connectTo,
} from "amqplib";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { type NatsServer, startNats } from "../harness/nats-server.ts";

/** Clients of a replica, by its number; the first one leads. */
export class Fleet {
  readonly nats: NatsServer;
  readonly replicas: readonly Gateway[];
  readonly #connections: Set<ChannelModel> = new Set();

  private constructor(nats: NatsServer, replicas: readonly Gateway[]) {
    this.nats = nats;
    this.replicas = replicas;
  }

  static async start(size: number, env: Readonly<Record<string, string>> = {}): Promise<Fleet> {
    const nats = await startNats();
    const start = (): Promise<Gateway> => startGateway({ env: { NATS_URL: nats.url, ...env } });
    const first = await start();
    return new Fleet(nats, [first, ...(await Promise.all(Array.from({ length: size - 1 }, start)))]);
  }

  replica(number: number): Gateway {
    const replica = this.replicas[number];
    if (replica === undefined) throw new Error(`there is no replica ${number}`);
    return replica;
  }

  async connect(number: number): Promise<ChannelModel> {
    const connection = await connectTo(this.replica(number).url, { noDelay: true });
    connection.on("error", () => undefined);
    connection.on("close", () => this.#connections.delete(connection));
    this.#connections.add(connection);
    return connection;
  }

  async channel(number: number): Promise<Channel> {
    return quiet(await (await this.connect(number)).createChannel());
  }

  async confirms(number: number): Promise<ConfirmChannel> {
    return quiet(await (await this.connect(number)).createConfirmChannel());
  }

  /** Closes every connection. */
  async disconnect(): Promise<void> {
    await Promise.all([...this.#connections].map((connection) => connection.close().catch(() => undefined)));
  }

  /** As a client that crashes. */
  drop(connection: ChannelModel): void {
    this.#connections.delete(connection);
    (connection.connection as unknown as { readonly stream: Socket }).stream.resetAndDestroy();
  }
}

function quiet<C extends Channel>(channel: C): C {
  channel.on("error", () => undefined);
  return channel;
}

/** The reply code that a refused operation closed its channel or connection with. */
export async function codeOf(operation: Promise<unknown>): Promise<number> {
  try {
    await operation;
    return 200;
  } catch (error) {
    const { code } = error as { readonly code?: number };
    if (code === undefined) throw error;
    return code;
  }
}

/** What a consumer was given, and whether the broker cancelled it. */
export class Taker {
  readonly messages: ConsumeMessage[] = [];
  cancelled = 0;
  tag = "";

  /** `each` may acknowledge; without it everything is held. */
  static async on(
    channel: Channel,
    queue: string,
    options: { readonly exclusive?: boolean; readonly each?: (message: ConsumeMessage) => void } = {},
  ): Promise<Taker> {
    const taker = new Taker();
    const { consumerTag } = await channel.consume(
      queue,
      (message) => {
        if (message === null) taker.cancelled++;
        else {
          taker.messages.push(message);
          options.each?.(message);
        }
      },
      { exclusive: options.exclusive ?? false },
    );
    taker.tag = consumerTag;
    return taker;
  }

  get texts(): string[] {
    return this.messages.map(({ content }) => content.toString());
  }
}

/** Publishes mandatorily and waits for the confirm; resolves to whether it was routed. */
export function publish(channel: ConfirmChannel, exchange: string, key: string, text: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let routed = true;
    const returned = (message: { readonly content: Buffer }): void => {
      if (message.content.toString() === text) routed = false;
    };
    channel.on("return", returned);
    channel.publish(exchange, key, Buffer.from(text), { mandatory: true, persistent: true }, (error: unknown) => {
      channel.off("return", returned);
      if (error) reject(error instanceof Error ? error : new Error("nacked"));
      else resolve(routed);
    });
  });
}

/** Takes and acknowledges all that is ready. */
export async function drain(channel: Channel, queue: string): Promise<string[]> {
  const texts: string[] = [];
  for (;;) {
    const message = await channel.get(queue, { noAck: true });
    if (message === false) return texts;
    texts.push(message.content.toString());
  }
}

/** Milliseconds until the operation is no longer refused. */
export async function timeUntilGranted(operation: () => Promise<unknown>, patience: number): Promise<number> {
  const since = performance.now();
  for (;;) {
    const code = await codeOf(operation());
    const elapsed = performance.now() - since;
    if (code === 200) return elapsed;
    if (elapsed > patience) throw new Error(`still refused with ${code} after ${Math.round(elapsed)} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
