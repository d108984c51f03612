// A connection without a socket: a transport that keeps what is written, and verbs that find nothing.
// For what a connection does with a peer's octets. What queues do is tested on a real bus.
import { decodeMethod, FrameDecoder, FrameType, type Method, methodFrame, PROTOCOL_HEADER } from "@amqp/codec";
import { Census } from "../../src/amqp091/census.ts";
import type { Connection } from "../../src/amqp091/connection.ts";
import { Connections } from "../../src/amqp091/connections.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/amqp091/limits.ts";
import { Suspicion } from "../../src/amqp091/suspicion.ts";
import type { Transport } from "../../src/amqp091/transport.ts";
import { AnonymousDoorkeeper } from "../../src/auth/anonymous.ts";
import type { Verbs } from "../../src/core/verbs.ts";
import { refuse } from "../../src/refusals.ts";

export const HEADER: Buffer = Buffer.from(PROTOCOL_HEADER);

/** The octets of a client's handshake, after which its connection is open. */
export const HANDSHAKE: Buffer = Buffer.concat([
  HEADER,
  methodFrame(0, "connection.start-ok", {
    clientProperties: [],
    mechanism: "PLAIN",
    response: "\0guest\0guest",
    locale: "en_US",
  }),
  methodFrame(0, "connection.tune-ok", { channelMax: 2047, frameMax: 131_072, heartbeat: 0 }),
  methodFrame(0, "connection.open", { virtualHost: "/" }),
]);

/** Everything is missing, every publish is stored at once. */
export function quietVerbs(): Verbs {
  const noQueue = async (_: unknown, queue: string) => refuse("no-queue", { queue });
  return {
    isCurrent: true,
    holdsLease: true,
    openSession: () => ({ id: "s" }),
    closeSession: async () => undefined,
    declareExchange: async () => undefined,
    checkExchange: async (exchange) => refuse("no-exchange", { exchange }),
    deleteExchange: async () => undefined,
    declareQueue: async (_, { name }) => ({ name: name === "" ? "amq-gen-1" : name, messages: 0, consumers: 0 }),
    checkQueue: noQueue,
    deleteQueue: async () => ({ messages: 0 }),
    purgeQueue: noQueue,
    bind: async (_, bindings) => ({ done: bindings.length, refusal: undefined }),
    unbind: async () => undefined,
    size: { queues: 0, bindings: 0 },
    topologyVersion: 1,
    route: (exchange, routingKey) =>
      exchange === ""
        ? { kind: "route", exchange, routingKey, exchangeKind: "direct", subject: `amqp._.${routingKey}` }
        : refuse("no-exchange", { exchange }),
    routable: () => false,
    fence: async () => undefined,
    publish: (_route, _properties, _body, sink, tag) => sink.published(tag, "stored"),
    maxMessageSize: 1024 * 1024,
    encodedSize: (length) => Math.ceil(length / 3) * 4 + 30,
    room: true,
    subscribe: noQueue,
    get: noQueue,
    requeue: () => undefined,
    join: () => undefined,
    leave: () => undefined,
  };
}

export class Peer implements Transport {
  readonly remote = "peer:1";
  readonly connection: Connection;
  readonly written: Uint8Array[] = [];
  /** What the connection logged as an error: a bug. */
  readonly errors: unknown[] = [];
  /** Octets that the peer does not take. */
  bufferedOctets = 0;
  paused = false;
  state: "open" | "ended" | "destroyed" = "open";

  /** @param beside another peer of the same listener. */
  constructor(verbs: Verbs = quietVerbs(), limits: Partial<Limits> = {}, beside?: Peer) {
    const quiet = () => undefined;
    const own = () =>
      new Connections({
        doorkeeper: new AnonymousDoorkeeper(verbs),
        log: { debug: quiet, info: quiet, warn: quiet, error: (fields) => this.errors.push(fields) },
        limits: { ...DEFAULT_LIMITS, ...limits },
        version: "1.2.3",
        clusterName: "test",
        accepting: quiet,
        census: new Census(),
        suspicion: new Suspicion(0),
      });
    const connections = beside?.connection.connections ?? own();
    const connection = connections.accept(this);
    if (connection === undefined) throw new Error("not accepted");
    this.connection = connection;
  }

  write(chunk: Uint8Array): boolean {
    this.written.push(chunk);
    return true;
  }

  cork(): void {}
  uncork(): void {}

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  end(): void {
    this.state = "ended";
  }

  destroy(): void {
    this.state = "destroyed";
  }

  /** Lets everything that is under way run, and everything be written. */
  async settle(): Promise<void> {
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  }

  get octets(): Buffer {
    return Buffer.concat(this.written);
  }

  /** The methods that came, in order. */
  get methods(): Method[] {
    const methods: Method[] = [];
    new FrameDecoder({ maxFrameSize: 0 }).push(this.octets, (type, _channel, payload) => {
      if (type === FrameType.METHOD) methods.push(decodeMethod(payload));
    });
    return methods;
  }

  get names(): string[] {
    return this.methods.map((method) => method.name);
  }

  /** The connection lets go of it. */
  async close(): Promise<void> {
    this.connection.closed();
    await this.settle();
  }
}
