/** Class access (30): asked by old clients and answered, since nothing here needs a ticket. Separate as every class is. */
import type { Handlers } from "../handler.ts";

export const ACCESS: Handlers<"access"> = {
  "access.request": (channel) => {
    channel.reply("access.request-ok", { ticket: 1 });
    return undefined;
  },
};
