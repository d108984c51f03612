/**
 * The two places of the NATS client that hand-wire needs, and the proof that they are there.
 *
 * Responsibilities: everything this package assumes of the client's insides is in this file, and is looked at before it
 * is used: another version of the client that lacks any of it gets client-wire instead.
 * Used by: wire. Separate because it is what to read when the client is upgraded.
 *
 *   in:  for await (chunk of transport) this.parser.parse(chunk);     parser is made anew for each dial
 *   out: this.transport.send(this.outbound.drain())                   in flushPending(), while connected
 */
import type { ByteSink } from "@amqp/codec";
import type { NatsConnection } from "@nats-io/nats-core";

export interface ClientParser {
  parse(chunk: Uint8Array): void;
  /** 0 between two frames. */
  readonly state: number;
}

export interface ClientProtocol {
  parser: ClientParser;
  /** Between the end of a handshake and the loss of the socket. */
  readonly connected: boolean;
  readonly transport: { readonly socket?: ByteSink & { readonly writable: boolean } };
  readonly info?: { readonly max_payload: number };
  /** Writes what the client gathered. */
  flushPending(): void;
}

/** The client's insides, or undefined where they are not as they are known. */
export function findSeams(connection: NatsConnection): ClientProtocol | undefined {
  const { protocol } = connection as { readonly protocol?: Partial<ClientProtocol> };
  if (typeof protocol !== "object" || protocol === null) return undefined;
  const own = Object.getOwnPropertyDescriptor(protocol, "parser");
  const { parser, transport } = protocol;
  const isKnown =
    own?.configurable === true &&
    own.writable === true &&
    typeof parser?.parse === "function" &&
    typeof parser.state === "number" &&
    typeof protocol.flushPending === "function" &&
    typeof protocol.connected === "boolean" &&
    typeof transport?.socket?.write === "function" &&
    typeof transport.socket.cork === "function" &&
    connection.info?.headers === true;
  return isKnown ? (protocol as ClientProtocol) : undefined;
}
