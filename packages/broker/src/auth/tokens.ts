/**
 * Tokens: a JSON Web Token of an OpenID Connect issuer to who bears it, or why it is not believed.
 *
 * Responsibilities: signature, algorithm, issuer, audience, times (`jose`), and the two claims that are used: `sub`, the
 * user, and the organisation. Nothing of a token but its claims' names is ever said.
 * Used by: jwt. Separate because it is a function of a token, a clock and keys, and knows no connection.
 */
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { type Namespace, toNamespace } from "../core/namespace.ts";

/** Which tokens are believed. */
export interface TokenRules {
  /** What `iss` must be. */
  readonly issuer: string;
  /** One of these must be among `aud`. */
  readonly audience: readonly string[];
  /** The claim that holds the organisation: a string of `[A-Za-z0-9_-]{1,63}`. */
  readonly orgClaim: string;
  /** Signature algorithms; by default every one of {@link ALGORITHMS}. */
  readonly algorithms?: readonly string[];
}

/**
 * The algorithms that may be allowed: asymmetric ones only. With a shared secret whoever can check a token can make one,
 * and a public key taken for such a secret lets anybody in.
 */
export const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

/** Who bears a token. */
export interface Bearer {
  readonly user: string;
  readonly namespace: Namespace;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Seconds that the issuer's clock may be ahead of ours: a token is often used in the second it was made. */
const AHEAD = 5;

export class Tokens {
  readonly #keys: JWTVerifyGetKey;
  readonly #rules: TokenRules;

  constructor(keys: JWTVerifyGetKey, rules: TokenRules) {
    this.#keys = keys;
    this.#rules = rules;
  }

  /** Resolves to the bearer, or to why it is not believed; rejects where that is a bug. */
  async read(token: string): Promise<Bearer | { readonly refused: string }> {
    const { issuer, audience, algorithms = ALGORITHMS } = this.#rules;
    let claims: JWTPayload;
    try {
      const verified = await jwtVerify(token, this.#keys, {
        issuer,
        audience: [...audience],
        algorithms: algorithms.filter((name) => (ALGORITHMS as readonly string[]).includes(name)),
        requiredClaims: ["exp", "sub"],
        clockTolerance: AHEAD,
      });
      claims = verified.payload;
    } catch (error) {
      // Its message names a claim or an algorithm; the error itself carries the payload and stays here.
      if (error instanceof errors.JOSEError) return { refused: `${error.code}: ${error.message}` };
      return { refused: `the token cannot be checked: ${error instanceof Error ? error.message : "unknown"}` };
    }
    return this.#toBearer(claims);
  }

  #toBearer(claims: JWTPayload): Bearer | { readonly refused: string } {
    const { sub, exp } = claims;
    const { orgClaim } = this.#rules;
    // The tolerance is for clocks that are ahead, not for tokens that are over.
    if (exp === undefined || exp * 1000 <= Date.now()) return { refused: "the token has expired" };
    if (typeof sub !== "string" || sub === "") return { refused: "the claim sub names nobody" };
    const org = Object.hasOwn(claims, orgClaim) ? claims[orgClaim] : undefined;
    const namespace = toNamespace(org);
    if (namespace === undefined) {
      return { refused: `the claim ${orgClaim} is ${org === undefined ? "missing" : "no name of an organisation"}` };
    }
    return { user: sub, namespace, expiresAt: exp * 1000 };
  }
}
