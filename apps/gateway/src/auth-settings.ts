/**
 * The settings of who may connect, as data. Used by settings.ts, whose table they are part of. Separate so that one file
 * holds what belongs to identity.
 */
import { TOKEN_ALGORITHMS } from "@amqp/broker";
import type { Setting } from "./settings.ts";

/** The name of a setting of who may connect. */
export type AuthSettingName =
  | "auth"
  | "allowAnonymous"
  | "jwtJwks"
  | "jwtIssuer"
  | "jwtAudience"
  | "jwtOrgClaim"
  | "jwtAlgorithms"
  | "natsAccounts";

export const AUTH_SETTINGS: Readonly<Record<AuthSettingName, Setting>> = {
  auth: {
    env: "AMQP_AUTH",
    flag: "--auth",
    value: "MODE",
    fallback: "none",
    about: "who may connect: none (anybody), jwt (the password is a token) or nats (the login is one to the bus)",
  },
  allowAnonymous: {
    env: "AMQP_ALLOW_ANONYMOUS",
    flag: "--allow-anonymous",
    fallback: "0",
    about: "1 serves other addresses than loopback although nobody is authenticated",
  },
  jwtJwks: {
    env: "AMQP_JWT_JWKS",
    flag: "--jwt-jwks",
    value: "URL|FILE",
    about: "JSON Web Key Set of the issuer: an https URL, or a file",
  },
  jwtIssuer: { env: "AMQP_JWT_ISSUER", flag: "--jwt-issuer", value: "NAME", about: "what a token's iss must be" },
  jwtAudience: {
    env: "AMQP_JWT_AUDIENCE",
    flag: "--jwt-audience",
    value: "NAME,...",
    about: "one of these must be a token's aud",
  },
  jwtOrgClaim: {
    env: "AMQP_JWT_ORG_CLAIM",
    flag: "--jwt-org-claim",
    value: "NAME",
    fallback: "org",
    about: "claim that names the organisation: 1 to 63 of A-Z a-z 0-9 _ -",
  },
  jwtAlgorithms: {
    env: "AMQP_JWT_ALGORITHMS",
    flag: "--jwt-algorithms",
    value: "NAME,...",
    fallback: TOKEN_ALGORITHMS.join(","),
    about: "signature algorithms that are accepted",
  },
  natsAccounts: {
    env: "AMQP_NATS_ACCOUNTS",
    flag: "--nats-accounts",
    value: "FILE",
    about: "JSON file of the gateway's own login to the bus in each account that is served (docs/security.md)",
  },
};
