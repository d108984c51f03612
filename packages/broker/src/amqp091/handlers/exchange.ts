/** Class exchange (40). Each waits for the channel's publishes before it changes where they go. Separate as every class is. */
import { isRefusal, refuse } from "../../refusals.ts";
import { exchangeArguments } from "../arguments.ts";
import type { Handlers } from "../handler.ts";

export const EXCHANGE: Handlers<"exchange"> = {
  "exchange.declare": async (channel, fields) => {
    await channel.published();
    const refusal = fields.passive
      ? await channel.verbs.checkExchange(fields.exchange)
      : await declare(channel, fields);
    if (refusal === undefined && !fields.nowait) channel.reply("exchange.declare-ok", {});
    return refusal;
  },

  "exchange.delete": async (channel, { exchange, ifUnused, nowait }) => {
    await channel.published();
    const refusal = await channel.verbs.deleteExchange(exchange, { ifUnused });
    if (refusal === undefined && !nowait) channel.reply("exchange.delete-ok", {});
    return refusal;
  },

  "exchange.bind": () => refuse("exchange-binding"),
  "exchange.unbind": () => refuse("exchange-binding"),
};

type Declare = Parameters<Handlers<"exchange">["exchange.declare"]>;

async function declare(channel: Declare[0], fields: Declare[1]): ReturnType<Declare[0]["verbs"]["declareExchange"]> {
  const canonical = exchangeArguments(fields.arguments);
  if (isRefusal(canonical)) return canonical;
  const { exchange: name, type: kind, durable, autoDelete, internal } = fields;
  return channel.verbs.declareExchange({ name, kind, durable, autoDelete, internal, arguments: canonical });
}
