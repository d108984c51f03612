/**
 * Which function takes which method of a channel: the class files side by side.
 *
 * Used by: channel. Separate because it is the one place that knows all classes.
 */
import type { ClassName, Method } from "@amqp/codec";
import { refuse } from "../../refusals.ts";
import type { Channel } from "../channel.ts";
import type { Content, Handlers, Outcome } from "../handler.ts";
import { ACCESS } from "./access.ts";
import { BASIC } from "./basic.ts";
import { CHANNEL } from "./channel.ts";
import { CONFIRM } from "./confirm.ts";
import { EXCHANGE } from "./exchange.ts";
import { QUEUE } from "./queue.ts";
import { TX } from "./tx.ts";

const HANDLERS: Handlers<Exclude<ClassName, "connection">> = {
  ...ACCESS,
  ...BASIC,
  ...CHANNEL,
  ...CONFIRM,
  ...EXCHANGE,
  ...QUEUE,
  ...TX,
};

type AnyHandler = (channel: Channel, fields: never, content: Content) => Outcome;

/** Runs a method on its channel. What no client may send there is 503. */
export function dispatch(channel: Channel, method: Method, content: Content): Outcome {
  // The handler stands under the method's name, so the fields are its own; TypeScript cannot follow that.
  const handler = (HANDLERS as Readonly<Record<string, AnyHandler | undefined>>)[method.name];
  if (handler === undefined) return refuse("unimplemented-method");
  return handler(channel, method.fields as never, content);
}
