// A client of the torture: one connection whose answers, deliveries and confirms are sorted as they come, so that an
// actor can ask, publish and be delivered to at once. On the harness's raw socket. Separate from the actors because
// none of this decides anything.
import { type FieldsInput, type FieldsOf, fromPlain, type MethodName, PROTOCOL_HEADER } from "@amqp/codec";
import { AmqpSocket, type Received } from "../harness/socket.ts";

/** What became of a question. */
export type Answer =
  | { readonly kind: "ok"; readonly name: MethodName; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly kind: "refused"; readonly code: number; readonly text: string }
  | { readonly kind: "lost" };

/** What a connection is told of without having asked. */
export interface PeerListener {
  delivered?(channel: number, fields: FieldsOf<"basic.deliver">, body: Buffer): void;
  confirmed?(kind: "ack" | "nack", tag: number, multiple: boolean): void;
  returned?(body: Buffer): void;
  cancelled?(channel: number, consumerTag: string): void;
  /** The broker closed a channel that had asked nothing. */
  channelClosed?(channel: number, code: number, text: string): void;
}

interface Pending {
  readonly channel: number;
  readonly resolve: (answer: Answer) => void;
}

const CAPABILITIES = { "basic.nack": true, consumer_cancel_notify: true, "connection.blocked": true };

type Content = "basic.deliver" | "basic.return" | "basic.get-ok";

/** How long a gateway may take to greet: a stopped one's port still accepts. */
const GREETING = 6_000;

export class Peer {
  readonly gateway: number;
  /** The reason of a connection.close, where there was one. */
  reason: { readonly code: number; readonly text: string } | undefined;
  readonly closed: Promise<void>;
  readonly #socket: AmqpSocket;
  readonly #listener: PeerListener;
  readonly #pending: Pending[] = [];
  #content: { readonly name: Content; readonly channel: number; readonly fields: unknown } | undefined;
  #left = 0;
  #pieces: Buffer[] = [];
  #open = true;

  private constructor(socket: AmqpSocket, gateway: number, listener: PeerListener) {
    this.#socket = socket;
    this.gateway = gateway;
    this.#listener = listener;
    this.closed = this.#pump();
  }

  /** Undefined: nobody listens there, or does not answer. */
  static async open(port: number, gateway: number, listener: PeerListener): Promise<Peer | undefined> {
    const socket = AmqpSocket.connect({ host: "127.0.0.1", port });
    try {
      socket.write(Buffer.from(PROTOCOL_HEADER));
      await socket.expect("connection.start", GREETING);
      socket.send(0, "connection.start-ok", {
        clientProperties: fromPlain({ product: "torture", capabilities: CAPABILITIES }),
        mechanism: "PLAIN",
        response: "\0guest\0guest",
        locale: "en_US",
      });
      await socket.expect("connection.tune", GREETING);
      socket.tune();
      socket.send(0, "connection.open", { virtualHost: "/" });
      await socket.expect("connection.open-ok", GREETING);
      return new Peer(socket, gateway, listener);
    } catch {
      socket.destroy();
      return undefined;
    }
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Asks and waits for the answer of that channel; its questions are answered in the order in which they were asked. */
  ask<N extends MethodName>(channel: number, name: N, fields: Partial<FieldsInput<N>>): Promise<Answer> {
    if (!this.#open) return Promise.resolve({ kind: "lost" });
    this.#socket.send(channel, name, fields as FieldsInput<N>);
    return new Promise((resolve) => this.#pending.push({ channel, resolve }));
  }

  send<N extends MethodName>(channel: number, name: N, fields: Partial<FieldsInput<N>>): void {
    if (this.#open) this.#socket.send(channel, name, fields as FieldsInput<N>);
  }

  publish(channel: number, to: Partial<FieldsInput<"basic.publish">>, body: Buffer): void {
    if (this.#open) this.#socket.publish(channel, to, body, { deliveryMode: 2 });
  }

  /** Without a word, as a client that crashed. */
  destroy(): void {
    this.#socket.destroy();
  }

  async #pump(): Promise<void> {
    for (;;) {
      const received = await this.#socket.next(600_000).catch((): Received => ({ kind: "closed" }));
      if (received.kind === "closed") break;
      this.#take(received);
    }
    this.#open = false;
    this.#socket.destroy();
    for (const { resolve } of this.#pending.splice(0)) resolve({ kind: "lost" });
  }

  #take(received: Received): void {
    if (received.kind === "header") {
      this.#left = received.bodySize;
      this.#pieces = [];
      if (this.#left === 0) this.#whole();
    } else if (received.kind === "body") {
      this.#pieces.push(received.payload);
      this.#left -= received.payload.length;
      if (this.#left === 0) this.#whole();
    } else if (received.kind === "method") this.#method(received);
  }

  #whole(): void {
    const content = this.#content;
    if (content === undefined) return;
    this.#content = undefined;
    const body = Buffer.concat(this.#pieces);
    if (content.name === "basic.return") this.#listener.returned?.(body);
    else if (content.name === "basic.deliver")
      this.#listener.delivered?.(content.channel, content.fields as FieldsOf<"basic.deliver">, body);
    else {
      const fields = { ...(content.fields as FieldsOf<"basic.get-ok">), body };
      this.#answer(content.channel, { kind: "ok", name: "basic.get-ok", fields });
    }
  }

  #method({ channel, method }: Extract<Received, { kind: "method" }>): void {
    const { name, fields } = method;
    switch (name) {
      case "basic.deliver":
      case "basic.return":
      case "basic.get-ok":
        this.#content = { name, channel, fields };
        return;
      case "basic.ack":
      case "basic.nack":
        this.#listener.confirmed?.(name === "basic.ack" ? "ack" : "nack", Number(fields.deliveryTag), fields.multiple);
        return;
      case "basic.cancel":
        this.#listener.cancelled?.(channel, fields.consumerTag);
        return;
      case "channel.close": {
        this.#socket.send(channel, "channel.close-ok", {});
        const answer: Answer = { kind: "refused", code: fields.replyCode, text: fields.replyText };
        if (!this.#answer(channel, answer)) this.#listener.channelClosed?.(channel, answer.code, answer.text);
        for (const later of this.#pending.filter((each) => each.channel === channel)) {
          this.#pending.splice(this.#pending.indexOf(later), 1);
          later.resolve({ kind: "lost" });
        }
        return;
      }
      case "connection.close":
        this.reason = { code: fields.replyCode, text: fields.replyText };
        this.#socket.send(0, "connection.close-ok", {});
        return;
      case "connection.blocked":
      case "connection.unblocked":
        return;
      default:
        this.#answer(channel, { kind: "ok", name, fields });
    }
  }

  #answer(channel: number, answer: Answer): boolean {
    const at = this.#pending.findIndex((each) => each.channel === channel);
    if (at < 0) return false;
    this.#pending.splice(at, 1)[0]?.resolve(answer);
    return true;
  }
}
