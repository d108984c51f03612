/**
 * What a client says of itself in start-ok, as far as it changes what it is sent.
 *
 * Used by: connection, handlers/connection. Separate because it is pure and reads what strangers send.
 */
import { type FieldTable, type FieldValue, getField } from "@amqp/codec";

export interface Client {
  /** The client's own name for the connection, or empty. */
  readonly name: string;
  readonly product: string;
  readonly cancelNotify: boolean;
  readonly blocked: boolean;
  /** It takes a connection.close for the answer to a refused login (RabbitMQ's extension); others for a lost network. */
  readonly learnsRefusal: boolean;
}

export const NO_CLIENT: Client = { name: "", product: "", cancelNotify: false, blocked: false, learnsRefusal: false };

export function toClient(properties: FieldTable): Client {
  return {
    name: text(getField(properties, "connection_name")),
    product: text(getField(properties, "product")),
    cancelNotify: capability(properties, "consumer_cancel_notify"),
    blocked: capability(properties, "connection.blocked"),
    learnsRefusal: capability(properties, "authentication_failure_close"),
  };
}

function capability(properties: FieldTable, name: string): boolean {
  const capabilities = getField(properties, "capabilities");
  return capabilities?.type === "table" && getField(capabilities.value, name)?.value === true;
}

/** What strangers call themselves goes into logs: one line, not too long. */
function text(field: FieldValue | undefined): string {
  if (field?.type !== "longstr" || typeof field.value !== "string") return "";
  return field.value.replace(/\p{Cc}/gu, " ").slice(0, 100);
}
