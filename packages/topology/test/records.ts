/** Records for the tests: the plainest of their kind, changed where a test needs it. */
import type { ExchangeRecord, QueueRecord } from "../src/entities.ts";

export function exchangeRecord(change: Partial<ExchangeRecord> = {}): ExchangeRecord {
  return { state: "ready", kind: "topic", durable: true, autoDelete: false, internal: false, arguments: "", ...change };
}

export function queueRecord(change: Partial<QueueRecord> = {}): QueueRecord {
  return {
    state: "ready",
    durable: true,
    autoDelete: false,
    exclusive: null,
    type: "classic",
    arguments: "",
    from: 0,
    consumed: false,
    ...change,
  };
}
