/**
 * Names that the broker gives.
 *
 * Used by: queues (server-named queues), broker (sessions, replicas). Separate because they must never meet a client's.
 */
import { randomBytes } from "node:crypto";

/** 22 characters of `[A-Za-z0-9_-]`, 128 bits: as RabbitMQ's, but for the dot, which no name here may hold. */
export function generatedName(): string {
  return `amq-gen-${uniqueId()}`;
}

/** 128 random bits as 22 characters that are one word of a subject. */
export function uniqueId(): string {
  return randomBytes(16).toString("base64url");
}
