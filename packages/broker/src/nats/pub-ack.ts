/**
 * What the bus answers to a publish.
 *
 * Responsibilities: stored or not from three octets, and what a refusal means where it is not.
 * Used by: publisher. Separate because every answer passes here and only the rare one may cost a JSON parse.
 */
import { Buffer } from "node:buffer";
import { Code, isUnled } from "./errors.ts";
import type { Frame } from "./frame.ts";
import { readStatus } from "./status.ts";

interface ErrorAnswer {
  readonly error?: { readonly err_code?: number; readonly code?: number; readonly description?: string };
}

/** `again`: stored nowhere, and may be in a moment. */
export interface PublishRefusal {
  readonly kind: "again" | "full" | "refused";
  readonly text: string;
}

/** A PubAck begins with `{"stream"`, an error with `{"error"`; a status has no payload at all. */
export function isStored(payload: Uint8Array): boolean {
  return payload.length > 10 && payload[0] === 0x7b && payload[2] === 0x73;
}

export function readRefusal(message: Frame): PublishRefusal {
  if (message.body.length === 0) {
    // An HMSG with a status is no success: 503 is no leader, 429 is more than the server queues (design §7).
    const { code: status, description } = readStatus(message.head);
    const text = status === 0 ? "an answer without status" : `${status} ${description}`;
    return { kind: status === Code.noResponders || status === 429 ? "again" : "refused", text };
  }
  const { code, text } = readError(message);
  if (isUnled(code)) return { kind: "again", text };
  return { kind: isFull(code, text) ? "full" : "refused", text: `${code} ${text}` };
}

function readError(message: Frame): { readonly code: number; readonly text: string } {
  try {
    const { error } = JSON.parse(Buffer.from(message.body).toString()) as ErrorAnswer;
    return { code: error?.err_code ?? error?.code ?? 0, text: error?.description ?? "refused" };
  } catch {
    return { code: 0, text: "an answer that is no PubAck" };
  }
}

function isFull(code: number, text: string): boolean {
  if (code === Code.storeFailed) return text.startsWith("maximum");
  return (
    code === Code.storageResources ||
    code === Code.insufficientResources ||
    code === Code.accountResources ||
    code === Code.memoryResources
  );
}
