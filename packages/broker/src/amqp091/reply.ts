/**
 * Refusals on this wire: the code's name before the text, and the class and method that were refused.
 *
 * Used by: channel (channel.close), connection (connection.close). Separate because a refusal knows no wire and this is
 * the one place where one becomes octets: `NOT_FOUND - no queue 'q' in vhost '/'`, as RabbitMQ spells them.
 */
import { type CodecError, METHODS, type MethodName, ReplyCode, truncateShortstr } from "@amqp/codec";
import { isBusError } from "../core/bus.ts";
import { type Refusal, refuse } from "../refusals.ts";

/** The fields of a channel.close or connection.close. */
export interface Closing {
  readonly replyCode: number;
  readonly replyText: string;
  readonly classId: number;
  readonly methodId: number;
}

const NAMES: ReadonlyMap<number, string> = new Map(Object.entries(ReplyCode).map(([name, code]) => [code, name]));

/** What answers this refusal; `method` is what was refused, undefined where none was decoded. */
export function toClosing(refusal: Refusal, method: MethodName | undefined): Closing {
  const ids = method === undefined ? { classId: 0, methodId: 0 } : METHODS[method];
  const replyText = truncateShortstr(`${NAMES.get(refusal.code) ?? refusal.code} - ${refusal.text}`);
  return { replyCode: refusal.code, replyText, classId: ids.classId, methodId: ids.methodId };
}

/** What answers malformed octets: the codec has the words. */
export function codecClosing(error: CodecError): Closing {
  const { replyCode, message, classId, methodId } = error;
  return { replyCode, replyText: message, classId, methodId };
}

/** What was thrown, as a refusal: a bus that did not answer (the shape of core/bus.ts), or else a bug. */
export function toRefusal(error: unknown): Refusal {
  return refuse(isBusError(error) ? "bus-silent" : "bug");
}
