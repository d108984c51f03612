/**
 * The `expiration` property: milliseconds as text, in RabbitMQ's reading of it.
 *
 * Used by: publishing, which refuses what is none. Separate because it is pure. A leading `+` and leading zeros are
 * taken; ten years is the longest.
 */
import { type Refusal, refuse } from "../refusals.ts";

const TEN_YEARS = 315_360_000_000;
const INTEGER = /^([+-]?\d+)(.*)$/su;

/** The refusal of an expiration that is not a number of milliseconds from 0 to ten years. */
export function checkExpiration(wanted: string): Refusal | undefined {
  const parts = INTEGER.exec(wanted);
  if (parts === null) return refuse("invalid-expiration", { wanted, text: "no_integer" });
  const [, digits = "", rest = ""] = parts;
  if (rest !== "") return refuse("invalid-expiration", { wanted, text: `{leftover_string,"${rest}"}` });
  const value = Number(digits);
  if (value < 0) return refuse("invalid-expiration", { wanted, text: `{value_negative,${value}}` });
  if (value > TEN_YEARS) return refuse("invalid-expiration", { wanted, text: `{value_too_large,${digits}}` });
  return undefined;
}
