/** Class tx (90): transactions are not implemented (HIP §4). Separate as every class is. */
import { refuse } from "../../refusals.ts";
import type { Handlers } from "../handler.ts";

export const TX: Handlers<"tx"> = {
  "tx.select": () => refuse("transactions"),
  "tx.commit": () => refuse("transactions"),
  "tx.rollback": () => refuse("transactions"),
};
