/**
 * The settings of limits, as data. Used by settings.ts, whose table they are part of, and limit-config.ts. Separate so
 * that one file holds what bounds a client.
 */
import { DEFAULT_LIMITS, UNCONFIRMED_OCTETS } from "@amqp/broker";
import type { Setting } from "./settings.ts";

/** The name of a setting that bounds clients. */
export type LimitSettingName =
  | "maxConnections"
  | "maxChannels"
  | "maxConsumers"
  | "maxQueues"
  | "maxBindings"
  | "frameMax"
  | "heartbeat"
  | "handshakeTimeout"
  | "maxConnectionsPerAddress"
  | "maxConnectionsPerUser"
  | "maxHandshakes"
  | "maxNamespaceQueues"
  | "maxNamespaceBindings"
  | "maxMessageSize"
  | "maxUnsent"
  | "maxWaiting"
  | "maxUnconfirmed"
  | "handshakeOctets"
  | "loginDelay";

export const LIMIT_SETTINGS: Readonly<Record<LimitSettingName, Setting>> = {
  maxConnections: {
    env: "AMQP_MAX_CONNECTIONS",
    flag: "--max-connections",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.connections}`,
    about: "open connections of each worker, over all ports",
  },
  maxConnectionsPerAddress: {
    env: "AMQP_MAX_CONNECTIONS_PER_ADDRESS",
    flag: "--max-connections-per-address",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.connectionsPerAddress}`,
    about: "open connections from one address (an IPv6 /64)",
  },
  maxConnectionsPerUser: {
    env: "AMQP_MAX_CONNECTIONS_PER_USER",
    flag: "--max-connections-per-user",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.connectionsPerUser}`,
    about: "open connections of one user",
  },
  maxHandshakes: {
    env: "AMQP_MAX_HANDSHAKES",
    flag: "--max-handshakes",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.handshakes}`,
    about: "connections that are not open yet; the oldest makes room for the next",
  },
  maxChannels: {
    env: "AMQP_MAX_CHANNELS",
    flag: "--max-channels",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.channelMax}`,
    about: "channels of one connection (channel-max)",
  },
  maxConsumers: {
    env: "AMQP_MAX_CONSUMERS",
    flag: "--max-consumers",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.consumers}`,
    about: "consumers of one connection",
  },
  maxQueues: {
    env: "AMQP_MAX_QUEUES",
    flag: "--max-queues",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.queues}`,
    about: "queues that one connection declares",
  },
  maxBindings: {
    env: "AMQP_MAX_BINDINGS",
    flag: "--max-bindings",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.bindings}`,
    about: "bindings that one connection makes",
  },
  maxNamespaceQueues: {
    env: "AMQP_MAX_NAMESPACE_QUEUES",
    flag: "--max-namespace-queues",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.namespaceQueues}`,
    about: "queues of one tenant, whoever declared them",
  },
  maxNamespaceBindings: {
    env: "AMQP_MAX_NAMESPACE_BINDINGS",
    flag: "--max-namespace-bindings",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.namespaceBindings}`,
    about: "bindings of one tenant, whoever made them",
  },
  maxMessageSize: {
    env: "AMQP_MAX_MESSAGE_SIZE",
    flag: "--max-message-size",
    value: "OCTETS",
    fallback: `${DEFAULT_LIMITS.messageSize}`,
    about: "largest body of a message; what the bus takes (max_payload) counts too",
  },
  maxUnsent: {
    env: "AMQP_MAX_UNSENT",
    flag: "--max-unsent",
    value: "OCTETS",
    fallback: `${DEFAULT_LIMITS.unsent}`,
    about: "what one connection may leave unread before its commands wait; deliveries stop at 1 MiB",
  },
  maxWaiting: {
    env: "AMQP_MAX_WAITING",
    flag: "--max-waiting",
    value: "OCTETS",
    fallback: `${DEFAULT_LIMITS.laneOctets}`,
    about: "bodies of one connection that wait behind another command before it is not read",
  },
  maxUnconfirmed: {
    env: "AMQP_MAX_UNCONFIRMED",
    flag: "--max-unconfirmed",
    value: "OCTETS",
    fallback: `${UNCONFIRMED_OCTETS}`,
    about: "publishes of each worker that the bus has not confirmed before publishers are not read",
  },
  frameMax: {
    env: "AMQP_FRAME_MAX",
    flag: "--frame-max",
    value: "OCTETS",
    fallback: `${DEFAULT_LIMITS.frameMax}`,
    about: "largest frame (frame-max)",
  },
  heartbeat: {
    env: "AMQP_HEARTBEAT",
    flag: "--heartbeat",
    value: "SECONDS",
    fallback: `${DEFAULT_LIMITS.heartbeat}`,
    about: "heartbeat that clients are offered; 0 offers none",
  },
  handshakeTimeout: {
    env: "AMQP_HANDSHAKE_TIMEOUT",
    flag: "--handshake-timeout",
    value: "SECONDS",
    fallback: `${DEFAULT_LIMITS.handshake / 1000}`,
    about: "how long a client may take from its connect to connection.open",
  },
  handshakeOctets: {
    env: "AMQP_HANDSHAKE_OCTETS",
    flag: "--handshake-octets",
    value: "OCTETS",
    fallback: `${DEFAULT_LIMITS.handshakeOctets}`,
    about: "what a client may send before connection.open; a token must fit",
  },
  loginDelay: {
    env: "AMQP_LOGIN_DELAY",
    flag: "--login-delay",
    value: "SECONDS",
    fallback: `${DEFAULT_LIMITS.loginDelay / 1000}`,
    about: "longest wait between two logins of an address after several failed; 0: none",
  },
};
