/**
 * The limits of the AMQP 0-9-1 front end and their defaults (design §9): each is checked before the memory is spent.
 *
 * Used by: server (takes changes to them), connection, channel, outbox. Separate because limits are configuration.
 */

export interface Limits {
  /** Milliseconds from accept to connection.open. */
  readonly handshake: number;
  /** Octets that a peer may send before connection.open. */
  readonly handshakeOctets: number;
  /** What connection.tune offers: octets of a frame, channels, seconds between heartbeats. */
  readonly frameMax: number;
  readonly channelMax: number;
  readonly heartbeat: number;
  /** Octets of a frame before tune-ok. */
  readonly handshakeFrameMax: number;
  /** Commands, and octets of bodies in them, that wait in the lanes of a connection before its socket is paused. */
  readonly laneCommands: number;
  readonly laneOctets: number;
  /** Octets of bodies announced and not complete, over all channels of a connection; beyond it 506. */
  readonly assembling: number;
  /** Unsent octets above which no delivery is asked for; above 16 times of it none is handed to the socket. */
  readonly unsentDeliveries: number;
  /** Unsent octets above which commands wait and the socket is not read. */
  readonly unsent: number;
  /** Open connections of a listener. */
  readonly connections: number;
  /** Of one connection: consumers, queues it declared, bindings it made. */
  readonly consumers: number;
  readonly queues: number;
  readonly bindings: number;
  /** Milliseconds before the socket of a refused login is dropped where its client would not understand an answer. */
  readonly refusal: number;
  /** Milliseconds that a peer has to answer connection.close. */
  readonly closing: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const DEFAULT_LIMITS: Limits = {
  handshake: 10_000,
  handshakeOctets: 16 * KIB,
  frameMax: 131_072,
  channelMax: 2047,
  heartbeat: 60,
  handshakeFrameMax: 8 * KIB,
  laneCommands: 4096,
  laneOctets: 16 * MIB,
  assembling: 128 * MIB,
  unsentDeliveries: 1 * MIB,
  unsent: 32 * MIB,
  connections: 10_000,
  consumers: 10_000,
  queues: 10_000,
  bindings: 100_000,
  refusal: 3_000,
  closing: 5_000,
};
