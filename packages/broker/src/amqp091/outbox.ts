/**
 * The way out of a connection: one slab and one write a turn of the loop (design §8).
 *
 * Responsibilities: every octet that a connection sends goes through here, in the order of the calls; the octets of a
 * turn leave together, unless deliveries among them are this process's no more; it knows how much is unsent, and grants
 * the socket's credit.
 * Used by: connection, channel, consumer, confirms. Separate because the moment of writing is decided in one place.
 */
import {
  type BodyPieces,
  checkProperties,
  type FieldsInput,
  type MethodName,
  NO_PROPERTIES,
  type Shortstr,
  Writer,
} from "@amqp/codec";
import type { Credit } from "../core/credit.ts";
import type { Delivery } from "../core/message.ts";
import { NOWHERE, Standing } from "../standing.ts";
import type { Limits } from "./limits.ts";
import { SocketCredit } from "./socket-credit.ts";
import type { Transport } from "./transport.ts";

/** Octets gathered in one turn that leave before its end: they need not pile up until then. */
const EARLY = 256 * 1024;

/** Asked by the outbox about the deliveries in it. */
export interface OutboxOwner {
  /** In this turn: may what was handed out be delivered still? */
  readonly mayDeliver: boolean;
  /** What waited, deliveries among it, was dropped: it may be others' by now. The connection cannot go on. */
  voided(): void;
}

export class Outbox {
  readonly #writer: Writer = new Writer();
  readonly #transport: Transport;
  readonly #socket: SocketCredit;
  readonly #unsentMax: number;
  readonly #owner: OutboxOwner;
  readonly #standing: Standing;
  #scheduled: boolean = false;
  #closed: boolean = false;
  /** Octets of a whole frame, as negotiated. */
  frameMax = 0;
  /** Rises with every write to the transport: heartbeats are due only where it stands still. */
  writes = 0;

  constructor(transport: Transport, limits: Limits, owner: OutboxOwner) {
    this.#transport = transport;
    this.#owner = owner;
    this.#standing = new Standing(() => owner.mayDeliver);
    this.#socket = new SocketCredit(limits.unsentDeliveries);
    this.#unsentMax = limits.unsent;
  }

  /** Bounds every consumer of the connection. */
  get credit(): Credit {
    return this.#socket.credit;
  }

  /** Octets that the peer has not taken yet. */
  get unsent(): number {
    return this.#transport.bufferedOctets + this.#writer.bytesPending;
  }

  /** The peer reads so slowly that nothing more may be done for it. */
  get congested(): boolean {
    return this.unsent > this.#unsentMax;
  }

  method<N extends MethodName>(channel: number, name: N, fields: FieldsInput<N>): void {
    if (this.#closed) return;
    this.#writer.methods(channel, name, fields);
    this.#schedule();
  }

  deliver(channel: number, consumerTag: Shortstr, tag: number, delivery: Delivery): void {
    if (this.#closed) return;
    const { redelivered, exchange, routingKey, body } = delivery;
    const properties = sound(delivery.properties);
    this.#standing.need();
    this.#writer.deliver(channel, consumerTag, tag, redelivered, exchange, routingKey, properties, body, this.frameMax);
    this.#socket.delivered(this.unsent);
    this.#schedule();
  }

  getOk(channel: number, tag: number, delivery: Delivery, messages: number): void {
    if (this.#closed) return;
    const { redelivered, exchange, routingKey, body } = delivery;
    const properties = sound(delivery.properties);
    this.#standing.need();
    this.#writer.getOk(channel, tag, redelivered, exchange, routingKey, messages, properties, body, this.frameMax);
    this.#schedule();
  }

  /** 312 NO_ROUTE: a mandatory message that no queue takes, whole (HIP §4.1). */
  returnUnroutable(
    channel: number,
    exchange: string,
    routingKey: string,
    properties: Uint8Array,
    body: BodyPieces,
  ): void {
    if (this.#closed) return;
    this.#writer.return(channel, 312, "NO_ROUTE", exchange, routingKey, properties, body, this.frameMax);
    this.#schedule();
  }

  confirm(channel: number, tag: number, stored: boolean): void {
    if (this.#closed) return;
    if (stored) this.#writer.ack(channel, tag, false);
    else this.#writer.nack(channel, tag, false);
    this.#schedule();
  }

  heartbeat(): void {
    if (this.#closed) return;
    this.#writer.heartbeat();
    this.#schedule();
  }

  raw(octets: Uint8Array): void {
    if (this.#closed) return;
    this.#writer.raw(octets);
    this.#schedule();
  }

  /** The transport has taken everything. */
  drained(): void {
    this.#socket.moved(this.unsent);
  }

  /** Hands over what waits, now. */
  flush(): void {
    if (this.#closed || this.#writer.bytesPending === 0) return;
    if (!this.#standing.mayLeave()) {
      this.#writer.flush(NOWHERE);
      this.#owner.voided();
      return;
    }
    this.writes++;
    this.#writer.flush(this.#transport);
    this.#socket.moved(this.unsent);
  }

  /** What waits is written; nothing can be added any more. */
  close(): void {
    this.flush();
    this.#closed = true;
  }

  #schedule(): void {
    if (this.#scheduled) {
      if (this.#writer.bytesPending > EARLY) this.flush();
      return;
    }
    this.#scheduled = true;
    this.#standing.begin();
    setImmediate(() => {
      this.#scheduled = false;
      this.flush();
    });
  }
}

/** What a native publisher put in place of properties must not break a client's connection: none then (HIP §2.2). */
function sound(properties: Uint8Array): Uint8Array {
  try {
    checkProperties(properties);
    return properties;
  } catch {
    return NO_PROPERTIES;
  }
}
