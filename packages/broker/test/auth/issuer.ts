/**
 * An issuer for the tests: keys made here, tokens signed with them, and its key set behind a real URL on loopback.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

export const ISSUER = "https://issuer.test";
export const AUDIENCE = "amqp";

export interface Signing {
  readonly kid: string;
  readonly alg: string;
  readonly key: CryptoKey;
  readonly jwk: JWK;
}

export async function signing(kid: string, alg = "ES256"): Promise<Signing> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, key: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

/** Seconds since the epoch. */
export const now = (): number => Math.floor(Date.now() / 1000);

/** A token that is good for a minute; `claims` change it, `undefined` takes one out. */
export function token({ key, kid, alg }: Signing, claims: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const payload: Record<string, unknown> = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: "ada",
    org: "acme",
    iat: now(),
    exp: now() + 60,
    ...claims,
  };
  for (const [name, value] of Object.entries(payload)) if (value === undefined) delete payload[name];
  return new SignJWT(payload as JWTPayload).setProtectedHeader({ alg, kid }).sign(key);
}

/** Serves whatever `keys` is at the moment. */
export class KeyServer {
  keys: readonly JWK[];
  /** How often it was asked. */
  asked = 0;
  /** It answers 500 while it is set. */
  broken = false;
  readonly #server: Server;

  private constructor(keys: readonly JWK[]) {
    this.keys = keys;
    this.#server = createServer((_, response) => {
      this.asked++;
      response.writeHead(this.broken ? 500 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify({ keys: this.keys }));
    });
  }

  static async start(...keys: readonly JWK[]): Promise<KeyServer> {
    const server = new KeyServer(keys);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/keys`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
