/**
 * A channel: one lane of commands, its consumers, what they hold, and the ledger of its publishes.
 *
 * Responsibilities: frames to commands to handlers, one after another; refusals to channel.close; giving everything back
 * when it ends. Used by: connection, and handlers/*, to which it is the context.
 * Separate from the connection because an exception of one channel leaves the others alone.
 *
 *   open ──client's close──► closed
 *     └─exception: channel.close sent──► closing ──close-ok──► closed       (in closing, frames are ignored)
 */
import {
  CommandAssembler,
  type FieldsInput,
  type FieldsOf,
  type FrameType,
  type Method,
  type MethodName,
  type MethodOf,
  methodName,
} from "@amqp/codec";
import type { Delivery } from "../core/message.ts";
import type { Session, Verbs } from "../core/verbs.ts";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import { Confirms } from "./confirms.ts";
import type { Connection } from "./connection.ts";
import type { Consumer, Held } from "./consumer.ts";
import type { Content } from "./handler.ts";
import { dispatch } from "./handlers/table.ts";
import { Lane } from "./lane.ts";
import { Prefetch } from "./prefetch.ts";
import { Publishing } from "./publishing.ts";
import { toClosing } from "./reply.ts";
import { Unacked } from "./unacked.ts";

/** What waits in a channel's lane. */
export interface Command {
  readonly method: Method;
  readonly content: Content;
  /** Found before its turn (a body too large): answered in its turn. */
  readonly refusal?: Refusal;
}

/** What is left of a channel that ended. */
export interface Ended {
  /** Resolves when its consumers are cancelled and the auto-delete queues that went with them are gone. */
  readonly cancelled: Promise<unknown>;
  /** What it held, for the caller to requeue. */
  readonly held: readonly Delivery[];
  /** Commands that came and did not run. */
  readonly dropped: readonly Command[];
}

const NO_BODY: readonly Uint8Array[] = [];
const NO_PROPERTIES = new Uint8Array(0);
/** Octets that a waiting command costs beside its content. */
const COMMAND_OCTETS = 128;

export class Channel {
  readonly number: number;
  readonly connection: Connection;
  readonly verbs: Verbs;
  readonly session: Session;
  readonly consumers: Map<string, Consumer> = new Map<string, Consumer>();
  readonly unacked: Unacked<Held> = new Unacked<Held>();
  /** Shared by the channel's consumers: basic.qos with `global`. */
  readonly prefetch: Prefetch = new Prefetch();
  readonly confirms: Confirms;
  readonly publishing: Publishing;
  /** Of the consumers made from now on: basic.qos without `global`. */
  prefetchCount = 0;
  /** The last queue declared here, which an empty name means (AMQP queue.declare). */
  lastQueue: string | undefined;
  /** Commands that have arrived. */
  arrivals = 0;

  readonly #assembler: CommandAssembler = new CommandAssembler();
  readonly #lane: Lane<Command>;
  #state: "open" | "closing" | "closed" = "open";
  #assembling = 0;
  /** Consumers whose queue is gone, to be told when the command that runs is answered. */
  readonly #cancelled: string[] = [];

  constructor(number: number, connection: Connection, verbs: Verbs, session: Session) {
    this.number = number;
    this.connection = connection;
    this.verbs = verbs;
    this.session = session;
    this.prefetch.limit(0);
    this.publishing = new Publishing(this, verbs);
    this.confirms = new Confirms({
      confirmed: (tag, stored) => {
        if (this.isOpen) connection.outbox.confirm(number, tag, stored);
      },
      lost: (outcome) => connection.lost(outcome),
      denied: (text) => this.isOpen && this.#refuse(refuse("not-permitted", { text }), "basic.publish"),
    });
    this.#lane = new Lane(
      (command) => this.#run(command),
      () => connection.outbox.congested,
      connection.pressure,
    );
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** The channel's next frame. */
  receive(type: FrameType, payload: Buffer): void {
    if (this.#state === "closing") {
      this.#receiveClosing(type, payload);
      return;
    }
    const assembled = this.#assembler.process(type, payload);
    switch (assembled.kind) {
      case "need-more":
        return;
      case "header": {
        const { method, properties, bodySize } = assembled;
        const refusal = this.publishing.checkSize(properties.length, bodySize);
        if (refusal === undefined) {
          this.#assembling = bodySize;
          if (!this.connection.pressure.announced(bodySize))
            this.connection.refuse(this.connection.pressure.tooMuch(), method.name);
        } else {
          this.#assembler.discard();
          this.#push(method, NO_PROPERTIES, NO_BODY, refusal);
        }
        return;
      }
      case "command":
        if (assembled.content) {
          const { method, properties, body, bodySize } = assembled;
          this.#settleAssembling();
          const refusal = bodySize === 0 ? this.publishing.checkSize(properties.length, 0) : undefined;
          this.#push(method, properties, body, refusal, bodySize);
        } else {
          this.#push(assembled.method, NO_PROPERTIES, NO_BODY);
        }
        return;
      case "error": {
        const { code: replyCode, text: replyText, classId, methodId } = assembled;
        this.connection.fail({ replyCode, replyText, classId, methodId });
        return;
      }
    }
  }

  /** Answers with a method, unless the channel has ended meanwhile. */
  reply<N extends MethodName>(name: N, fields: FieldsInput<N>): void {
    if (this.isOpen) this.connection.outbox.method(this.number, name, fields);
  }

  returnUnroutable(fields: FieldsOf<"basic.publish">, content: Content): void {
    const { exchange, routingKey } = fields;
    this.connection.outbox.returnUnroutable(this.number, exchange, routingKey, content.properties, content.body);
  }

  /** The queue that a command means: an empty name is the last one declared on this channel. */
  queueName(name: string): string | Refusal {
    return name === "" ? (this.lastQueue ?? refuse("no-previous-queue")) : name;
  }

  /** Resolves when the bus has answered every publish of this channel so far (design §5). */
  published(): Promise<void> | undefined {
    return this.confirms.settled();
  }

  /** The queue.binds that wait right behind the one that runs. */
  takeBinds(): readonly MethodOf<"queue.bind">[] {
    return this.#lane.takeNext(isBind).map((command) => command.method);
  }

  /** The queue of a consumer is gone: its client is told, if it wants to know. */
  consumerGone(consumer: Consumer): void {
    if (this.consumers.get(consumer.tag) !== consumer) return;
    this.forgetConsumer(consumer.tag);
    if (!this.connection.client.cancelNotify) return;
    // Behind the answer of the command that did it (queue.delete): a client expects that first.
    this.#cancelled.push(consumer.tag);
    if (!this.#lane.pending) this.#sayCancelled();
  }

  forgetConsumer(tag: string): void {
    if (this.consumers.delete(tag)) this.connection.quota.consuming(-1);
  }

  /** Its peer reads again, or may be read again. */
  go(): void {
    this.#lane.go();
  }

  /** The client closed it: everything is given back; the number can be used again after close-ok. */
  async close(): Promise<void> {
    const { cancelled, held } = this.end();
    this.verbs.requeue(held);
    await cancelled;
    this.connection.outbox.method(this.number, "channel.close-ok", {});
    this.connection.forget(this);
  }

  /** Cancels its consumers and takes out what they held, for the caller to requeue; nothing of it runs any more. */
  end(): Ended {
    if (this.#state === "open") this.#state = "closed";
    const dropped = this.#lane.stop();
    this.#settleAssembling();
    const cancelled = Promise.allSettled([...this.consumers.values()].map((consumer) => consumer.cancel()));
    for (const tag of [...this.consumers.keys()]) this.forgetConsumer(tag);
    this.confirms.abandon();
    return { cancelled, held: this.unacked.takeAll().map((one) => one.delivery), dropped };
  }

  #push(method: Method, properties: Uint8Array, body: readonly Uint8Array[], refusal?: Refusal, bodySize = 0): void {
    const content: Content = { properties, body, arrival: ++this.arrivals };
    const command: Command = refusal === undefined ? { method, content } : { method, content, refusal };
    this.#lane.push(command, COMMAND_OCTETS + properties.length + bodySize);
  }

  #run(command: Command): Promise<void> | undefined {
    const { method, content, refusal } = command;
    try {
      const outcome = refusal ?? dispatch(this, method, content);
      if (outcome === undefined) return undefined;
      if (isRefusal(outcome)) {
        this.#refuse(outcome, method.name);
        return undefined;
      }
      return outcome
        .then((late) => {
          if (late !== undefined && this.isOpen) this.#refuse(late, method.name);
          this.#sayCancelled();
        })
        .catch((error: unknown) => this.connection.broke(error, method.name));
    } catch (error) {
      this.connection.broke(error, method.name);
      return undefined;
    }
  }

  #sayCancelled(): void {
    for (const consumerTag of this.#cancelled.splice(0)) this.reply("basic.cancel", { consumerTag, nowait: true });
  }

  #refuse(refusal: Refusal, method: MethodName): void {
    if (refusal.scope === "connection") {
      this.connection.fail(toClosing(refusal, method));
      return;
    }
    // Outstanding confirms are answered before channel.close (design §7).
    this.confirms.abandon();
    this.#state = "closing";
    const { held, dropped } = this.end();
    this.verbs.requeue(held);
    this.connection.refusedChannel(this, refusal);
    this.connection.outbox.method(this.number, "channel.close", toClosing(refusal, method));
    // The client's own channel.close may be among what came before it knew.
    if (dropped.some((command) => command.method.name === "channel.close")) this.#answerClose();
  }

  /** Frames in flight are ignored until close-ok, undecoded but for their ids. */
  #receiveClosing(type: FrameType, payload: Buffer): void {
    if (type !== 1 || payload.length < 4) return;
    switch (methodName(payload.readUInt16BE(0), payload.readUInt16BE(2))) {
      case "channel.close-ok":
        this.#state = "closed";
        this.connection.forget(this);
        return;
      case "channel.close":
        this.#answerClose();
        return;
      case "channel.open":
        this.connection.fail(toClosing(refuse("channel-opened-twice"), "channel.open"));
        return;
      default:
        return;
    }
  }

  /** It crossed ours; the client's close-ok still comes. */
  #answerClose(): void {
    this.connection.outbox.method(this.number, "channel.close-ok", {});
  }

  #settleAssembling(): void {
    this.connection.pressure.assembled(this.#assembling);
    this.#assembling = 0;
  }
}

function isBind(command: Command): command is Command & { readonly method: MethodOf<"queue.bind"> } {
  return command.method.name === "queue.bind" && command.refusal === undefined;
}
