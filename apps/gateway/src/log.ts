/**
 * The log: pino, pretty on a terminal and one JSON object a line elsewhere, on standard output. What is logged under a
 * credential's name is cut out, in case somebody logs a whole configuration; config.ts already keeps credentials out of
 * what is shown. Used by main.ts and handed to all that log.
 */
import process from "node:process";
import { type DestinationStream, type Logger, pino } from "pino";
import pretty from "pino-pretty";
import type { LogLevel } from "./config.ts";

export type { Logger } from "pino";

const SECRETS = ["password", "pass", "token", "seed", "nkey", "creds", "response"];

/**
 * Makes the log.
 * @param destination where it goes instead of standard output; a test's
 */
export function createLog(level: LogLevel, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: "[redacted]" },
    formatters: { level: (label: string) => ({ level: label }) },
  };
  if (destination !== undefined) return pino(options, destination);
  // Synchronous, in this thread: the last line before an exit is the one that matters.
  if (process.stdout.isTTY)
    return pino(options, pretty({ sync: true, colorize: true, translateTime: "SYS:HH:MM:ss.l" }));
  return pino(options, pino.destination({ fd: 1, sync: true }));
}
