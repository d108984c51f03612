/** Class channel (20) on an open channel; opening one is the connection's. Separate as every class is. */
import { refuse } from "../../refusals.ts";
import type { Handlers } from "../handler.ts";

export const CHANNEL: Handlers<"channel"> = {
  "channel.open": () => refuse("channel-opened-twice"),

  "channel.close": (channel) => channel.close().then(() => undefined),

  // The channel is not closing, so nobody asked; while it is, the channel itself takes the answer.
  "channel.close-ok": () => refuse("unimplemented-method"),

  "channel.flow": (channel, { active }) => {
    if (!active) return refuse("flow-off");
    channel.reply("channel.flow-ok", { active });
    return undefined;
  },

  "channel.flow-ok": () => refuse("unimplemented-method"),
};
