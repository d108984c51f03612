// A raw AMQP client on @amqp/codec: says exactly what a test wants to say, wrong things included, and reports every
// frame that comes back. Used by the wire-level tests. Separate from client libraries because those never send what
// the specification forbids.
import { connect, type Socket } from "node:net";
import {
  decodeMethod,
  encodeProperties,
  type FieldsInput,
  type FieldsOf,
  FRAME_OVERHEAD,
  FrameDecoder,
  FrameType,
  frame,
  fromPlain,
  type Method,
  type MethodName,
  methodFrame,
  PROTOCOL_HEADER,
  type PropertiesInput,
  Writer,
} from "@amqp/codec";

/** What came from the broker. */
export type Received =
  | { readonly kind: "method"; readonly channel: number; readonly method: Method }
  | { readonly kind: "header"; readonly channel: number; readonly bodySize: number; readonly properties: Buffer }
  | { readonly kind: "body"; readonly channel: number; readonly payload: Buffer }
  | { readonly kind: "heartbeat"; readonly channel: number }
  | { readonly kind: "protocol-header"; readonly octets: Buffer }
  | { readonly kind: "closed" };

/** What the client answers in the handshake; RabbitMQ's offer by default, heartbeats off. */
export interface Handshake {
  readonly channelMax?: number;
  readonly frameMax?: number;
  readonly heartbeat?: number;
  readonly virtualHost?: string;
  readonly mechanism?: string;
  readonly response?: Uint8Array | string;
  /** Announced in client-properties; by default what modern clients announce. */
  readonly capabilities?: Readonly<Record<string, boolean>>;
}

const CAPABILITIES = {
  publisher_confirms: true,
  "basic.nack": true,
  consumer_cancel_notify: true,
  "connection.blocked": true,
  authentication_failure_close: true,
} as const;

/** One raw connection. Heartbeats are received but never sent by itself. */
export class AmqpSocket {
  readonly #socket: Socket;
  readonly #decoder: FrameDecoder = new FrameDecoder({ maxFrameSize: 0 });
  readonly #received: Received[] = [];
  #chunks = 0;
  #wake: (() => void) | undefined;
  #frameMax = 131_072;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("end", () => socket.destroy());
    socket.on("close", () => this.#push({ kind: "closed" }));
  }

  /** Opens the socket; nothing is said yet. */
  static connect(to: { readonly host: string; readonly port: number }): AmqpSocket {
    return new AmqpSocket(connect(to.port, to.host));
  }

  /** Opens the socket and an AMQP connection over it. */
  static async open(to: { readonly host: string; readonly port: number }, how: Handshake = {}): Promise<AmqpSocket> {
    const socket = AmqpSocket.connect(to);
    await socket.login(how);
    socket.tune(how);
    socket.send(0, "connection.open", { virtualHost: how.virtualHost ?? "/" });
    await socket.expect("connection.open-ok");
    return socket;
  }

  /** Protocol header, connection.start, start-ok; resolves with connection.start. Tune is not awaited. */
  async start(how: Handshake = {}): Promise<FieldsOf<"connection.start">> {
    this.write(Buffer.from(PROTOCOL_HEADER));
    const start = await this.expect("connection.start");
    this.send(0, "connection.start-ok", {
      clientProperties: fromPlain({ product: "AmqpSocket", capabilities: how.capabilities ?? CAPABILITIES }),
      mechanism: how.mechanism ?? "PLAIN",
      response: how.response ?? "\0guest\0guest",
      locale: "en_US",
    });
    return start;
  }

  /** {@link start}, then resolves with connection.tune. */
  async login(how: Handshake = {}): Promise<FieldsOf<"connection.tune">> {
    await this.start(how);
    return await this.expect("connection.tune");
  }

  /** Sends tune-ok. */
  tune({ channelMax = 2047, frameMax = 131_072, heartbeat = 0 }: Handshake = {}): void {
    this.#frameMax = frameMax;
    this.send(0, "connection.tune-ok", { channelMax, frameMax, heartbeat });
  }

  /** Opens a channel and returns its number. */
  async channel(number = 1): Promise<number> {
    this.send(number, "channel.open", {});
    await this.expect("channel.open-ok");
    return number;
  }

  /** Writes a method frame. */
  send<N extends MethodName>(channel: number, name: N, fields: Partial<FieldsInput<N>>): void {
    this.write(methodOf(channel, name, fields));
  }

  /** Writes a frame around any payload. */
  frame(type: FrameType, channel: number, payload: Uint8Array): void {
    this.write(frame(type, channel, payload));
  }

  /** Writes octets as they are. */
  write(octets: Uint8Array): void {
    if (!this.#socket.destroyed) this.#socket.write(octets);
  }

  /** basic.publish with its content, in frames as agreed. */
  publish(
    channel: number,
    to: Partial<FieldsInput<"basic.publish">>,
    body: Uint8Array | string = "",
    properties: PropertiesInput = {},
  ): void {
    const writer = new Writer();
    const fields = { exchange: "", routingKey: "", mandatory: false, immediate: false, ...to };
    const octets = typeof body === "string" ? Buffer.from(body) : body;
    writer.content(channel, "basic.publish", fields, encodeProperties(properties), octets, this.#frameMax);
    writer.flush(this.#socket);
  }

  /** The next thing that comes, heartbeats included. */
  async next(timeout = 5_000): Promise<Received> {
    const end = Date.now() + timeout;
    for (;;) {
      const first = this.#received.shift();
      if (first !== undefined) return first;
      const left = end - Date.now();
      if (left <= 0) throw new Error(`nothing came within ${timeout} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
  }

  /** The next thing but heartbeats must be this method; resolves with its fields. */
  async expect<N extends MethodName>(name: N, timeout = 5_000): Promise<FieldsOf<N>> {
    const received = await this.#nextButHeartbeats(timeout);
    if (received.kind === "method" && received.method.name === name) return received.method.fields as FieldsOf<N>;
    throw new Error(`expected ${name}, got ${describe(received)}`);
  }

  /** The next content: header and body frames, put together. */
  async expectContent(timeout = 5_000): Promise<{ properties: Buffer; body: Buffer; frames: readonly number[] }> {
    const header = await this.#nextButHeartbeats(timeout);
    if (header.kind !== "header") throw new Error(`expected a content header, got ${describe(header)}`);
    const pieces: Buffer[] = [];
    for (let left = header.bodySize; left > 0; ) {
      const body = await this.#nextButHeartbeats(timeout);
      if (body.kind !== "body") throw new Error(`expected a body frame, got ${describe(body)}`);
      pieces.push(body.payload);
      left -= body.payload.length;
    }
    const frames = pieces.map((piece) => piece.length + FRAME_OVERHEAD);
    return { properties: header.properties, body: Buffer.concat(pieces), frames };
  }

  /** The broker drops the socket; what came before is returned. */
  async expectClosed(timeout = 5_000): Promise<Received[]> {
    const before: Received[] = [];
    for (;;) {
      const received = await this.next(timeout);
      if (received.kind === "closed") return before;
      before.push(received);
    }
  }

  /** Everything that comes within the time, or until the socket closes. */
  async collect(milliseconds: number): Promise<Received[]> {
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    return this.#received.splice(0);
  }

  /** Drops the socket without a word. */
  destroy(): void {
    this.#socket.destroy();
  }

  async #nextButHeartbeats(timeout: number): Promise<Received> {
    for (;;) {
      const received = await this.next(timeout);
      if (received.kind !== "heartbeat") return received;
    }
  }

  #take(chunk: Buffer): void {
    if (this.#chunks++ === 0 && chunk.subarray(0, 4).toString("latin1") === "AMQP") {
      this.#push({ kind: "protocol-header", octets: Buffer.from(chunk.subarray(0, 8)) });
      return;
    }
    this.#decoder.push(chunk, (type, channel, payload) => this.#push(toReceived(type, channel, payload)));
  }

  #push(received: Received): void {
    this.#received.push(received);
    this.#wake?.();
  }
}

function toReceived(type: FrameType, channel: number, payload: Buffer): Received {
  switch (type) {
    case FrameType.METHOD:
      return { kind: "method", channel, method: decodeMethod(payload) };
    case FrameType.HEADER:
      return {
        kind: "header",
        channel,
        bodySize: Number(payload.readBigUInt64BE(4)),
        properties: payload.subarray(12),
      };
    case FrameType.BODY:
      return { kind: "body", channel, payload };
    case FrameType.HEARTBEAT:
      return { kind: "heartbeat", channel };
  }
}

/** A method frame of which only the telling fields are given: the others are zero, false or empty. */
export function methodOf<N extends MethodName>(channel: number, name: N, fields: Partial<FieldsInput<N>>): Buffer {
  return methodFrame(channel, name, fields as FieldsInput<N>);
}

/** One line for an error message. */
export function describe(received: Received): string {
  if (received.kind !== "method") return received.kind;
  const { name, fields } = received.method;
  const text = JSON.stringify(fields, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
  return `${name} on channel ${received.channel} ${text}`;
}
