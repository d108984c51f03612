/**
 * The limits of clients, read from the settings. Used by config.ts. Separate as their settings are.
 */
import type { Limits } from "@amqp/broker";
import type { Gathered, SettingName } from "./settings.ts";
import { integer, required } from "./values.ts";

/** @throws BadSetting */
export function readLimits(given: Gathered): Partial<Limits> {
  const count = (name: SettingName): number => integer(required(given, name), 1, 10_000_000);
  return {
    connections: count("maxConnections"),
    channelMax: integer(required(given, "maxChannels"), 1, 65_535),
    consumers: count("maxConsumers"),
    queues: count("maxQueues"),
    bindings: count("maxBindings"),
    // AMQP 4.2.3: no peer may be offered less than frame-min-size.
    frameMax: integer(required(given, "frameMax"), 4096, 16 * 1024 * 1024),
    heartbeat: integer(required(given, "heartbeat"), 0, 65_535),
    handshake: integer(required(given, "handshakeTimeout"), 1, 3600) * 1000,
  };
}
