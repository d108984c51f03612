/**
 * The public keys of an issuer: a JSON Web Key Set behind a URL or in a file, fetched again when it is old or when a
 * token names a key that is not in it (rotation).
 *
 * Used by: open, for tokens. Separate because where keys come from, how long they are believed and how often an unknown
 * key may make us ask again has nothing to do with what a token says.
 */
import { readFile, stat } from "node:fs/promises";
import { createLocalJWKSet, createRemoteJWKSet, type JWTVerifyGetKey } from "jose";
import type { Log } from "../core/log.ts";

/** Milliseconds after which keys behind a URL are fetched again. */
const AGE = 10 * 60_000;
/** Milliseconds between two fetches that unknown keys ask for: strangers can name any key they like. */
const COOLDOWN = 10_000;
/** Milliseconds that one fetch may take; below the time of a handshake. */
const FETCH = 5_000;
/** Milliseconds between two looks at the file. */
const LOOK = 1_000;

export interface KeysOptions {
  readonly log: Log;
  /** Milliseconds between two fetches that unknown keys ask for; 10,000 by default. */
  readonly cooldown?: number;
}

/**
 * Opens a key set and reads it once. Rejects with one line that names the remedy where it cannot be read (HIP §5).
 * @param source an `https:` URL (`http:` too: whoever configures it says that the way there is safe), or a file's path
 */
export function openKeys(source: string, options: KeysOptions): Promise<JWTVerifyGetKey> {
  return /^https?:/i.test(source) ? remoteKeys(source, options) : fileKeys(source, options);
}

async function remoteKeys(source: string, { cooldown = COOLDOWN }: KeysOptions): Promise<JWTVerifyGetKey> {
  const url = new URL(source);
  // What fetch says of such a URL shows it.
  if (url.username !== "" || url.password !== "") {
    throw new Error("the key set's URL holds a login, which is not sent: correct AMQP_JWT_JWKS");
  }
  const keys = createRemoteJWKSet(url, {
    cacheMaxAge: AGE,
    cooldownDuration: cooldown,
    timeoutDuration: FETCH,
  });
  try {
    await keys.reload();
  } catch (error) {
    throw unreadable(source, error, "start the issuer, or correct AMQP_JWT_JWKS");
  }
  return keys;
}

async function fileKeys(path: string, { log, cooldown = LOOK }: KeysOptions): Promise<JWTVerifyGetKey> {
  const read = async (): Promise<JWTVerifyGetKey> => createLocalJWKSet(JSON.parse(await readFile(path, "utf8")));
  const look = async (): Promise<string> => {
    const { mtimeMs, size, ino } = await stat(path);
    return `${mtimeMs} ${size} ${ino}`;
  };
  let keys: JWTVerifyGetKey;
  let seen: string;
  try {
    seen = await look();
    keys = await read();
  } catch (error) {
    throw unreadable(path, error, "write a JSON Web Key Set there, or correct AMQP_JWT_JWKS");
  }
  let looked = Date.now();
  return async (header, token) => {
    if (Date.now() - looked >= Math.min(LOOK, cooldown)) {
      looked = Date.now();
      try {
        const present = await look();
        if (present !== seen) {
          keys = await read();
          seen = present;
          log.info({}, "the key set was read again");
        }
      } catch (error) {
        // Half written, or away for a moment: those that are known stay until it can be read.
        log.warn({}, `the key set cannot be read again, the keys that are known stay: ${saidBy(error)}`);
      }
    }
    return keys(header, token);
  };
}

function unreadable(source: string, error: unknown, remedy: string): Error {
  return new Error(`the key set ${source} cannot be read (${saidBy(error)}): ${remedy}`, {
    cause: error,
  });
}

function saidBy(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== "" ? `${error.message}: ${cause.message}` : error.message;
}
