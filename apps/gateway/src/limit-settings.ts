/**
 * The settings of limits, as data. Used by settings.ts, whose table they are part of, and limit-config.ts. Separate so
 * that one file holds what bounds a client.
 */
import { DEFAULT_LIMITS } from "@amqp/broker";
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
  | "handshakeTimeout";

export const LIMIT_SETTINGS: Readonly<Record<LimitSettingName, Setting>> = {
  maxConnections: {
    env: "AMQP_MAX_CONNECTIONS",
    flag: "--max-connections",
    value: "COUNT",
    fallback: `${DEFAULT_LIMITS.connections}`,
    about: "open connections of each worker",
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
};
