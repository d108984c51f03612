/**
 * The port to a socket: octets out, reading paused and resumed, an end.
 *
 * Used by: connection, outbox, gate. Implemented by server.ts over node:net (and later node:tls). Separate so that a
 * connection can be driven without a socket: tests feed it any octets in any partition, and a WebSocket can stand in.
 */
import type { ByteSink } from "@amqp/codec";

export interface Transport extends ByteSink {
  /** The peer, as logs name it: `127.0.0.1:50412`. */
  readonly remote: string;
  /** Octets handed to `write` that the peer's side has not taken yet. */
  readonly bufferedOctets: number;
  /** Stops reading: nothing is received until {@link resume}, but for what was under way. */
  pause(): void;
  resume(): void;
  /** Ends after what was written has gone out; the peer gets a moment to read it, then the transport is destroyed. */
  end(): void;
  /** Drops it at once. */
  destroy(): void;
}

/** What a transport tells its connection. */
export interface TransportListener {
  receive(chunk: Buffer): void;
  /** `write` had returned false, and now everything has gone out. */
  drained(): void;
  /** It is closed, from whichever side; nothing comes after it. */
  closed(error?: Error): void;
}
