/** Who may connect, where, and by what: what is refused and what is warned of. */
import { describe, expect, it } from "vitest";
import { config, error } from "./parsed.ts";

const jwt = {
  AMQP_AUTH: "jwt",
  AMQP_JWT_JWKS: "https://issuer.test/keys",
  AMQP_JWT_ISSUER: "https://issuer.test",
  AMQP_JWT_AUDIENCE: "amqp, http",
};
const nats = { AMQP_AUTH: "nats", AMQP_NATS_ACCOUNTS: "/etc/accounts.json", NATS_URL: "nats://bus:4222" };

const pair = { AMQP_TLS_CERT: "/c", AMQP_TLS_KEY: "/k" };

describe("who may connect", () => {
  it("bearers of tokens, from any address", () => {
    expect(config(["--host", "0.0.0.0"], { ...jwt, AMQP_JWT_ALGORITHMS: "ES256,RS256" })).toMatchObject({
      auth: {
        kind: "jwt",
        keys: "https://issuer.test/keys",
        issuer: "https://issuer.test",
        audience: ["amqp", "http"],
        orgClaim: "org",
        algorithms: ["ES256", "RS256"],
      },
    });
    expect(config([], { ...jwt, AMQP_JWT_JWKS: "/etc/keys.json" }).auth).toMatchObject({ keys: "/etc/keys.json" });
    expect(config([], { ...jwt, AMQP_JWT_JWKS: "http://127.0.0.1:1/k" }).auth).toMatchObject({ kind: "jwt" });
  });

  it("a mode that is half configured, or configured and not chosen, is refused", () => {
    expect(error([], { ...jwt, AMQP_JWT_JWKS: "" })).toMatch(/^AMQP_JWT_JWKS is missing/);
    expect(error([], { ...jwt, AMQP_JWT_ISSUER: " " })).toMatch(/^AMQP_JWT_ISSUER is missing/);
    expect(error([], { ...jwt, AMQP_JWT_AUDIENCE: "" })).toMatch(/^AMQP_JWT_AUDIENCE is missing/);
    expect(error([], { AMQP_JWT_ISSUER: "x" })).toMatch(/AMQP_AUTH=jwt/);
    expect(error(["--auth", "open"])).toMatch(/none, jwt or nats/);
  });

  it("whoever the bus lets in, by a file of its accounts; no login of ours beside it, and no bus without logins", () => {
    expect(config(["--host", "0.0.0.0"], nats)).toMatchObject({
      auth: { kind: "nats", accountsFile: "/etc/accounts.json" },
    });
    expect(error([], { ...nats, NATS_URL: "" })).toMatch(/^NATS_URL is missing/);
    expect(error([], { ...nats, AMQP_NATS_ACCOUNTS: "" })).toMatch(/^AMQP_NATS_ACCOUNTS is missing/);
    expect(error([], { ...nats, AMQP_AUTH: "jwt" })).toMatch(/^AMQP_NATS_ACCOUNTS is for AMQP_AUTH=nats/);
    expect(error([], { ...nats, NATS_USER: "u", NATS_PASSWORD: "hidden" })).toMatch(/^NATS_USER is one login/);
  });

  it("keys come a safe way only, and no algorithm of a shared secret is taken", () => {
    expect(error([], { ...jwt, AMQP_JWT_JWKS: "http://issuer.test/keys" })).toMatch(/no safe way/);
    const login = error([], { ...jwt, AMQP_JWT_JWKS: "https://user:hidden@issuer.test/keys" });
    expect(login).toMatch(/login/);
    expect(login).not.toContain("hidden");
    expect(error([], { ...jwt, AMQP_JWT_ALGORITHMS: "RS256,HS256" })).toMatch(/^AMQP_JWT_ALGORITHMS is not/);
    expect(error([], { ...jwt, AMQP_JWT_ALGORITHMS: "none" })).toMatch(/^AMQP_JWT_ALGORITHMS is not/);
  });
});

describe("TLS", () => {
  it("is served beside plain AMQP, or alone", () => {
    const tls = { port: 5671, cert: "/c", key: "/k", ca: undefined, verify: false };
    expect(config([], pair)).toMatchObject({ port: 5672, tls });
    expect(config(["--port", "none"], pair)).toMatchObject({ port: undefined, tls });
    const asked = config(["--tls-port", "0", "--tls-verify=require"], { ...pair, AMQP_TLS_CA: "/a" });
    expect(asked.tls).toEqual({ ...tls, port: 0, ca: "/a", verify: true });
  });

  it.each([
    [{ AMQP_TLS_CERT: "/c" }, /^AMQP_TLS_CERT .*set AMQP_TLS_CERT and AMQP_TLS_KEY/],
    [{ AMQP_TLS_KEY: "/k" }, /^AMQP_TLS_KEY /],
    [{ AMQP_TLS_PORT: "5671" }, /^AMQP_TLS_PORT /],
    [{ AMQP_TLS_VERIFY: "require" }, /^AMQP_TLS_VERIFY /],
    [{ CLOUD_AMQP_PORT: "none" }, /^CLOUD_AMQP_PORT is none, and there is no TLS/],
    [{ ...pair, AMQP_TLS_VERIFY: "yes" }, /use none or require/],
    [{ ...pair, AMQP_TLS_VERIFY: "require" }, /name their authority in AMQP_TLS_CA/],
    [{ ...pair, AMQP_TLS_CA: "/a" }, /set AMQP_TLS_VERIFY=require/],
    [{ ...pair, AMQP_TLS_PORT: "5672" }, /is the port of TLS too/],
    [{ NATS_URL: "a", NATS_CERT: "/c" }, /^NATS_CERT is half of a pair/],
    [{ NATS_URL: "a", NATS_KEY: "/k" }, /^NATS_KEY is half of a pair/],
    [{ NATS_CA: "/a" }, /^NATS_CA is for a bus that runs elsewhere/],
  ])("by halves is a mistake: %j", (env, line) => {
    expect(error([], env)).toMatch(line);
  });

  it("of the bus is demanded by its address, its authority or a certificate for it", () => {
    const plain = { NATS_URL: "nats://a" };
    expect(config([], plain).bus).toMatchObject({ tls: undefined });
    expect(config([], { ...plain, NATS_CA: "/a" }).bus).toMatchObject({ tls: { ca: "/a" } });
    const identity = { cert: "/c", key: "/k" };
    expect(config([], { ...plain, NATS_CERT: "/c", NATS_KEY: "/k" }).bus).toMatchObject({ tls: { identity } });
    expect(config(["--nats-tls-first"], plain).bus).toMatchObject({ tls: { first: true } });
  });
});

describe("the address", () => {
  it.each(["127.0.0.1", "127.9.8.7", "::1", "0:0:0:0:0:0:0:1", "localhost"])("%s is loopback: served", (host) => {
    expect(config(["--host", host])).toMatchObject({ host, warnings: [] });
  });

  it.each(["0.0.0.0", "::", "192.0.2.1", "127.example.com", "127.0.0.1.example.com", "localhost.example.com", "*"])(
    "%j is refused while nobody is authenticated",
    (host) => {
      expect(error(["--host", host])).toContain("AMQP_ALLOW_ANONYMOUS=1");
      expect(error([], { AMQP_HOST: host })).toMatch(/^AMQP_HOST would serve /);
      const allowed = config(["--host", host], { AMQP_ALLOW_ANONYMOUS: "1" });
      expect(allowed.host).toBe(host);
      expect(allowed.warnings).toEqual([expect.stringContaining("without authentication")]);
      expect(config(["--host", host, "--allow-anonymous"]).host).toBe(host);
    },
  );

  it.each([
    ["jwt", jwt, "tokens"],
    ["nats", nats, "passwords and tokens"],
  ] as const)(
    "is warned of, once, where others than this machine send the logins of %s in plain text",
    (mode, env, what) => {
      const plain = config(["--host", "0.0.0.0"], env).warnings;
      expect(plain).toEqual([
        expect.stringMatching(`^0.0.0.0 is served without TLS .AMQP_AUTH=${mode}.: the ${what} of`),
      ]);
      expect(config(["--host", "0.0.0.0"], { ...env, ...pair }).warnings).toEqual(plain);
      expect(config(["--host", "0.0.0.0", "--port", "none"], { ...env, ...pair }).warnings).toEqual([]);
      expect(config([], env).warnings).toEqual([]);
    },
  );
});
