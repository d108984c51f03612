/**
 * The file of accounts: the gateway's own login to the bus in each account that it serves, as JSON. Used by boot.ts.
 * Separate because the file is written by hand, and what is wrong with it is one line with a remedy that shows no secret.
 *
 *     { "ACME": { "user": "gateway", "password": "…" }, "OTHER": { "creds": "/etc/amqp/other.creds" } }
 */
import { readFile } from "node:fs/promises";
import { BootError } from "./boot-error.ts";
import type { Login } from "./config.ts";

const REMEDY = 'write { "<account>": { "user": …, "password": … } }, or creds, nkey or token in their place';

/** The login of each account, by the account's name or public key. @throws BootError */
export async function readAccounts(file: string): Promise<ReadonlyMap<string, Login>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const why = error instanceof Error && "code" in error ? error.code : "unreadable";
    throw new BootError(`AMQP_NATS_ACCOUNTS names a file that cannot be read (${why})`, "correct it");
  }
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch {
    // The parser's message shows a piece of the text.
    throw new BootError("the file of AMQP_NATS_ACCOUNTS is no JSON", REMEDY);
  }
  if (!isObject(entries) || Object.keys(entries).length === 0) {
    throw new BootError("the file of AMQP_NATS_ACCOUNTS names no account", REMEDY);
  }
  return new Map(Object.entries(entries).map(([account, entry]) => [account, toLogin(account, entry)]));
}

function toLogin(account: string, entry: unknown): Login {
  if (isObject(entry)) {
    const { user, password, creds, nkey, token } = entry;
    const keys = Object.keys(entry).sort().join();
    if (keys === "password,user" && isText(user) && isText(password)) return { kind: "user", user, password };
    if (keys === "creds" && isText(creds)) return { kind: "creds", file: creds };
    if (keys === "nkey" && isText(nkey)) return { kind: "nkey", seed: nkey };
    if (keys === "token" && isText(token)) return { kind: "token", token };
  }
  throw new BootError(`the file of AMQP_NATS_ACCOUNTS has no login for ${account}`, REMEDY);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
