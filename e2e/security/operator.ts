// An operator of a NATS system made in the test: accounts and users whose JWTs are signed here, and the server's
// configuration that believes them. Used by the tests of logins by a user's JWT.
import { nkeys } from "@nats-io/nats-core";

type KeyPair = ReturnType<typeof nkeys.createUser>;

const encode = (value: object | Uint8Array): string =>
  Buffer.from(value instanceof Uint8Array ? value : JSON.stringify(value)).toString("base64url");

/** A NATS JWT: `sub` signed by `issuer`, of that type. */
function sign(issuer: KeyPair, sub: KeyPair, name: string, nats: object): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { jti: `${name}-${now}`, iat: now, iss: issuer.getPublicKey(), name, sub: sub.getPublicKey(), nats };
  const signed = `${encode({ typ: "JWT", alg: "ed25519-nkey" })}.${encode(claims)}`;
  return `${signed}.${encode(issuer.sign(Buffer.from(signed)))}`;
}

const UNLIMITED = { subs: -1, data: -1, payload: -1 };

/** A user of an account: what the login says. */
export interface User {
  readonly jwt: string;
  readonly seed: string;
  readonly key: string;
  /** As a credentials file. */
  readonly creds: string;
}

export interface Operator {
  /** Of nats-server. */
  readonly conf: string;
  /** The public key of the account that is served. */
  readonly account: string;
  user(name: string, permissions?: object): User;
}

export function makeOperator(): Operator {
  const [operator, account, system] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const limits = {
    ...UNLIMITED,
    imports: -1,
    exports: -1,
    wildcards: true,
    conn: -1,
    leaf: -1,
    mem_storage: -1,
    disk_storage: -1,
    streams: -1,
    consumer: -1,
  };
  const accountOf = (pair: KeyPair, name: string, own: object): string =>
    sign(operator, pair, name, { limits: own, type: "account", version: 2 });
  const { mem_storage: _, disk_storage: __, streams: ___, consumer: ____, ...plain } = limits;
  const conf = [
    `operator: ${sign(operator, operator, "operator", { type: "operator", version: 2 })}`,
    `system_account: ${system.getPublicKey()}`,
    "resolver: MEMORY",
    "resolver_preload: {",
    `  ${account.getPublicKey()}: ${accountOf(account, "ACME", limits)}`,
    `  ${system.getPublicKey()}: ${accountOf(system, "SYS", plain)}`,
    "}",
  ].join("\n");
  return {
    conf,
    account: account.getPublicKey(),
    user: (name, permissions = {}) => {
      const pair = nkeys.createUser();
      const jwt = sign(account, pair, name, { ...permissions, ...UNLIMITED, type: "user", version: 2 });
      const seed = Buffer.from(pair.getSeed()).toString();
      const creds = `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
      return { jwt, seed, key: pair.getPublicKey(), creds };
    },
  };
}
