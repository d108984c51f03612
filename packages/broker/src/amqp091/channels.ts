/**
 * The channels of a connection, by number.
 *
 * Responsibilities: opening one, handing each frame to its channel, ending all at once so that what they held goes back
 * in its order. Used by: connection. Separate because a connection also has a life without channels.
 */
import { decodeMethod, FrameType } from "@amqp/codec";
import type { Delivery } from "../core/message.ts";
import type { Session } from "../core/verbs.ts";
import { refuse } from "../refusals.ts";
import { Channel } from "./channel.ts";
import type { Connection } from "./connection.ts";

export class Channels {
  readonly #connection: Connection;
  readonly #channels: Map<number, Channel> = new Map<number, Channel>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** A frame of a channel other than 0. */
  receive(session: Session, type: FrameType, number: number, payload: Buffer): void {
    const channel = this.#channels.get(number);
    if (channel !== undefined) channel.receive(type, payload);
    else this.#open(session, type, number, payload);
  }

  /** The channel's number may be opened again. */
  forget(channel: Channel): void {
    if (this.#channels.get(channel.number) === channel) this.#channels.delete(channel.number);
  }

  /** Commands that waited for the peer to read go on. */
  go(): void {
    for (const channel of this.#channels.values()) channel.go();
  }

  /** Ends all: every consumer is cancelled before the caller requeues anything. */
  end(): { readonly cancelled: Promise<unknown>; readonly held: readonly Delivery[] } {
    const ended = [...this.#channels.values()].map((channel) => channel.end());
    this.#channels.clear();
    return {
      cancelled: Promise.all(ended.map(({ cancelled }) => cancelled)),
      held: ended.flatMap(({ held }) => held),
    };
  }

  #open(session: Session, type: FrameType, number: number, payload: Buffer): void {
    const connection = this.#connection;
    if (type !== FrameType.METHOD) {
      connection.refuse(refuse("unexpected-frame", { wanted: `${type}`, present: `${number}` }));
      return;
    }
    const { name } = decodeMethod(payload);
    if (name !== "channel.open") {
      connection.refuse(refuse("channel-not-open"), name);
      return;
    }
    const { channelMax } = connection.tuning;
    if (number > channelMax) {
      connection.refuse(refuse("channel-number", { wanted: `${number}`, present: `${channelMax}` }), name);
      return;
    }
    this.#channels.set(number, new Channel(number, connection, connection.identity.verbs, session));
    connection.outbox.method(number, "channel.open-ok", {});
  }
}
