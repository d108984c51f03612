/**
 * What a program that runs a gateway inside itself needs: its configuration, boot, and the nats-server finder, which the
 * repository's own scripts use too. The program `amqp-gateway` is main.ts.
 */
export { boot, type Gateway } from "./boot.ts";
export { BootError } from "./boot-error.ts";
export { type BusConfig, type Command, type Config, type Login, type LogLevel, parseConfig } from "./config.ts";
export { type EmbeddedOptions, EmbeddedServer } from "./embedded.ts";
export type { Machine } from "./folders.ts";
export { createLog, type Logger } from "./log.ts";
export { type FindOptions, type FoundNatsServer, findNatsServer, MINIMUM_VERSION } from "./nats-server.ts";
export { SETTINGS, type Setting, type SettingName } from "./settings.ts";
