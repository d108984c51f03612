/**
 * What a connection receives: the protocol header, then frames, each to where it belongs.
 *
 * Responsibilities: the octets that a stranger may send (design §9), and which frame may come in which state.
 * Used by: connection, handshake (which goes on with what waited). Separate because it is all that reads a peer's
 * octets before a channel does. It throws the codec's errors; the connection answers them.
 */
import { decodeMethod, FrameDecoder, FrameType, PROTOCOL_HEADER, parseProtocolHeader } from "@amqp/codec";
import { refuse } from "../refusals.ts";
import type { Channels } from "./channels.ts";
import type { Connection } from "./connection.ts";
import { dispatchConnection, sendStart } from "./handlers/connection.ts";

/** No octets. To receive them is to go on with the frames that waited. */
export const NOTHING: Buffer = Buffer.alloc(0);

export class Reception {
  readonly #connection: Connection;
  readonly #channels: Channels;
  #decoder: FrameDecoder;
  #header: Buffer = NOTHING;
  #handshakeOctets = 0;
  /** Frames that came while the doorkeeper was asked; bounded by the octets of a handshake. */
  #waiting: (readonly [FrameType, number, Buffer])[] = [];

  constructor(connection: Connection, channels: Channels) {
    this.#connection = connection;
    this.#channels = channels;
    this.#decoder = new FrameDecoder({ maxFrameSize: connection.limits.handshakeFrameMax });
  }

  /** Whether the peer has said anything. */
  began: boolean = false;

  /** Octets of a whole frame, as negotiated. */
  set frameMax(octets: number) {
    this.#decoder.maxFrameSize = octets;
  }

  /** The next octets, in any partition. @throws CodecError where they are no frames, or no method. */
  receive(chunk: Buffer): void {
    this.began = true;
    if (this.#waiting.length > 0 && this.#connection.state !== "authenticating") this.#receiveWaiting();
    if (this.#connection.state === "header") this.#receiveHeader(chunk);
    else if (chunk.length > 0) this.#receiveFrames(chunk);
  }

  #receiveWaiting(): void {
    for (const [type, channel, payload] of this.#waiting.splice(0)) this.#receiveFrame(type, channel, payload);
  }

  #receiveHeader(chunk: Buffer): void {
    const octets = this.#header.length === 0 ? chunk : Buffer.concat([this.#header, chunk]);
    const parsed = parseProtocolHeader(octets);
    if (parsed === "need-more") {
      this.#header = octets;
    } else if (parsed === "foreign") {
      this.#connection.outbox.raw(Buffer.from(PROTOCOL_HEADER)); // what is spoken here (AMQP 4.2.2)
      this.#connection.drop("the peer speaks another protocol");
    } else {
      this.#connection.state = "starting";
      sendStart(this.#connection);
      if (octets.length > PROTOCOL_HEADER.length) this.#receiveFrames(octets.subarray(PROTOCOL_HEADER.length));
    }
  }

  #receiveFrames(chunk: Buffer): void {
    const connection = this.#connection;
    if (connection.session === undefined) this.#handshakeOctets += chunk.length;
    try {
      this.#decoder.push(chunk, (type, channel, payload) => this.#receiveFrame(type, channel, payload));
    } catch (error) {
      // The stream is lost; the answer to our connection.close may still be read from where the next chunk begins.
      this.#decoder = new FrameDecoder({ maxFrameSize: connection.limits.handshakeFrameMax });
      throw error;
    }
    const { handshakeOctets } = connection.limits;
    if (connection.session === undefined && this.#handshakeOctets > handshakeOctets) {
      connection.refuse(refuse("handshake-too-long", { present: `${handshakeOctets}` }));
    }
  }

  #receiveFrame(type: FrameType, channel: number, payload: Buffer): void {
    const connection = this.#connection;
    if (connection.state === "closed") return;
    if (connection.state === "authenticating") {
      this.#waiting.push([type, channel, Buffer.from(payload)]);
      return;
    }
    if (connection.state === "closing") {
      if (type === FrameType.METHOD && channel === 0) dispatchConnection(connection, decodeMethod(payload));
    } else if (type === FrameType.HEARTBEAT) {
      if (channel !== 0) this.#refuseFrame(type, channel);
      else if (payload.length > 0) connection.refuse(refuse("malformed-heartbeat"));
    } else if (channel === 0) {
      if (type === FrameType.METHOD) dispatchConnection(connection, decodeMethod(payload));
      else this.#refuseFrame(type, channel);
    } else if (connection.session !== undefined) {
      this.#channels.receive(connection.session, type, channel, payload);
    } else {
      this.#refuseFrame(type, channel);
    }
  }

  #refuseFrame(type: FrameType, channel: number): void {
    this.#connection.refuse(refuse("unexpected-frame", { wanted: `${type}`, present: `${channel}` }));
  }
}
