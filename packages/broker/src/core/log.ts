/**
 * The port to a log: pino's call shape, so that the gateway passes its logger as it is.
 *
 * Used by: core, front ends, nats. Separate so that the broker depends on no logger.
 */

/** One level of a log: fields first, then the line. */
export type LogLine = (fields: object, message: string) => void;

export interface Log {
  readonly debug: LogLine;
  readonly info: LogLine;
  readonly warn: LogLine;
  readonly error: LogLine;
}
