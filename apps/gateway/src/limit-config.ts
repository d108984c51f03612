/**
 * The limits of clients, read from the settings. Used by config.ts. Separate as their settings are.
 */
import type { Limits } from "@amqp/broker";
import type { Gathered, SettingName } from "./settings.ts";
import { integer, required } from "./values.ts";

/** @throws BadSetting */
export function readLimits(given: Gathered): Partial<Limits> {
  const count = (name: SettingName): number => integer(required(given, name), 1, 10_000_000);
  const octets = (name: SettingName): number => integer(required(given, name), 1, Number.MAX_SAFE_INTEGER);
  // RabbitMQ's clients send a start-ok of several hundred octets.
  const handshakeOctets = integer(required(given, "handshakeOctets"), 4096, 16 * 1024 * 1024);
  return {
    connections: count("maxConnections"),
    connectionsPerAddress: count("maxConnectionsPerAddress"),
    connectionsPerUser: count("maxConnectionsPerUser"),
    handshakes: count("maxHandshakes"),
    channelMax: integer(required(given, "maxChannels"), 1, 65_535),
    consumers: count("maxConsumers"),
    queues: count("maxQueues"),
    bindings: count("maxBindings"),
    namespaceQueues: count("maxNamespaceQueues"),
    namespaceBindings: count("maxNamespaceBindings"),
    messageSize: octets("maxMessageSize"),
    unsent: octets("maxUnsent"),
    laneOctets: octets("maxWaiting"),
    // AMQP 4.2.3: no peer may be offered less than frame-min-size.
    frameMax: integer(required(given, "frameMax"), 4096, 16 * 1024 * 1024),
    heartbeat: integer(required(given, "heartbeat"), 0, 65_535),
    handshakeOctets,
    handshakeFrameMax: handshakeOctets,
    loginDelay: integer(required(given, "loginDelay"), 0, 3600) * 1000,
    handshake: integer(required(given, "handshakeTimeout"), 1, 3600) * 1000,
  };
}
