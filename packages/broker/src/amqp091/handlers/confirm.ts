/** Class confirm (85): from here on each publish of the channel is confirmed (HIP §4.1). Separate as every class is. */
import type { Handlers } from "../handler.ts";

export const CONFIRM: Handlers<"confirm"> = {
  "confirm.select": (channel, { nowait }) => {
    channel.confirms.select();
    if (!nowait) channel.reply("confirm.select-ok", {});
    return undefined;
  },
};
