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
  /** Octets of a frame before tune-ok: a login's token must fit. */
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
  /** Open connections of a process, over all its ports; from one address (an IPv6 /64); of one user of a namespace. */
  readonly connections: number;
  readonly connectionsPerAddress: number;
  readonly connectionsPerUser: number;
  /** Connections of a process whose handshake is not over: the oldest makes room for one more. */
  readonly handshakes: number;
  /** Milliseconds that an address with failed logins waits between two further ones at most; 0: none. */
  readonly loginDelay: number;
  /** Of one connection: consumers, queues it declared, bindings it made. */
  readonly consumers: number;
  readonly queues: number;
  readonly bindings: number;
  /** Of one namespace (a tenant, or the flat one), whoever made them: queues, and bindings beside the default exchange's. */
  readonly namespaceQueues: number;
  readonly namespaceBindings: number;
  /** Octets of a message's body; what the bus takes is less or more, and counts too. */
  readonly messageSize: number;
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
  handshakeFrameMax: 16 * KIB,
  laneCommands: 4096,
  laneOctets: 16 * MIB,
  assembling: 128 * MIB,
  unsentDeliveries: 1 * MIB,
  unsent: 32 * MIB,
  connections: 10_000,
  connectionsPerAddress: 10_000,
  connectionsPerUser: 10_000,
  handshakes: 10_000,
  loginDelay: 5_000,
  consumers: 10_000,
  queues: 10_000,
  bindings: 100_000,
  namespaceQueues: 50_000,
  namespaceBindings: 500_000,
  messageSize: 128 * MIB,
  refusal: 3_000,
  closing: 5_000,
};
