/**
 * SASL: who says to be there, by PLAIN (RFC 4616) or AMQPLAIN (a field table, what php-amqplib sends).
 *
 * Responsibilities: reading the response of start-ok. What is read goes to the doorkeeper, which decides, and nowhere
 * else.
 * Used by: handlers/connection. Separate because it is pure and reads what strangers send.
 */
import { decodeTable, type FieldTable, getField } from "@amqp/codec";

/** As connection.start lists them. */
export const MECHANISMS = "PLAIN AMQPLAIN";

/** What was said. `password` is a secret. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

/** The login that a response carries; `undefined` for a mechanism that is not offered, "malformed" for one's bad form. */
export function readLogin(mechanism: string, response: Buffer): Login | "malformed" | undefined {
  if (mechanism === "PLAIN") return readPlain(response);
  if (mechanism === "AMQPLAIN") return readAmqplain(response);
  return undefined;
}

/** authorization identity NUL user NUL password */
function readPlain(response: Buffer): Login | "malformed" {
  const first = response.indexOf(0);
  if (first < 0) return "malformed";
  const second = response.indexOf(0, first + 1);
  if (second < 0 || response.indexOf(0, second + 1) >= 0) return "malformed";
  return { user: response.toString("utf8", first + 1, second), password: response.toString("utf8", second + 1) };
}

/** A field table without its length. */
function readAmqplain(response: Buffer): Login | "malformed" {
  const sized = Buffer.allocUnsafe(4 + response.length);
  sized.writeUInt32BE(response.length, 0);
  response.copy(sized, 4);
  let table: FieldTable;
  try {
    table = decodeTable(sized);
  } catch {
    return "malformed";
  }
  const login = getField(table, "LOGIN");
  const password = getField(table, "PASSWORD");
  if (login?.type !== "longstr" || password?.type !== "longstr") return "malformed";
  return { user: text(login.value), password: text(password.value) };
}

function text(value: string | Uint8Array): string {
  return typeof value === "string" ? value : Buffer.from(value).toString("utf8");
}
