// What the broker closed a channel or a connection with, seen through amqplib.
// Tests of errors use it to state code, text and method at once. Separate from session.ts because amqplib reports a
// refusal in up to three places, and only this file should know them.
import type { EventEmitter } from "node:events";
import { type MethodName, methodName } from "@amqp/codec";
import type { Channel } from "amqplib";

/** A channel.close or connection.close of the broker. */
export interface Refusal {
  readonly scope: "channel" | "connection";
  readonly code: number;
  readonly text: string;
  /** The method that was refused; amqplib reports it for channels only. */
  readonly method?: MethodName | "none";
}

interface CloseError extends Error {
  readonly code?: number;
  readonly classId?: number;
  readonly methodId?: number;
}

/** Does something that the broker must refuse; resolves with how it did. Waits at most five seconds. */
export async function refusalOf(channel: Channel, action: (channel: Channel) => unknown): Promise<Refusal> {
  const connection = channel.connection as unknown as EventEmitter;
  const refused = new Promise<Refusal>((resolve, reject) => {
    channel.once("error", (error: CloseError) => resolve(toRefusal("channel", error)));
    connection.once("error", (error: CloseError) => resolve(toRefusal("connection", error)));
    setTimeout(() => reject(new Error("the broker refused nothing within five seconds")), 5_000).unref();
  });
  try {
    await action(channel);
  } catch {
    // The same refusal as a rejected promise; the event carries more.
  }
  return await refused;
}

function toRefusal(scope: Refusal["scope"], error: CloseError): Refusal {
  const text = /with message "(.*)"$/s.exec(error.message)?.[1] ?? error.message;
  const { code = 0, classId, methodId } = error;
  if (classId === undefined || methodId === undefined) return { scope, code, text };
  return { scope, code, text, method: methodName(classId, methodId) ?? "none" };
}

/** A refusal on the channel, spelled for `toEqual`. */
export function channelRefusal(code: number, text: string, method: MethodName): Refusal {
  return { scope: "channel", code, text, method };
}
