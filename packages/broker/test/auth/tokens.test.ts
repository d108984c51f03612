import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportSPKI, importJWK, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openKeys } from "../../src/auth/keys.ts";
import { ALGORITHMS, type TokenRules, Tokens } from "../../src/auth/tokens.ts";
import type { Log } from "../../src/core/log.ts";
import { AUDIENCE, ISSUER, KeyServer, now, type Signing, signing, token } from "./issuer.ts";

const quiet = (): void => undefined;
const log: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const RULES: TokenRules = { issuer: ISSUER, audience: [AUDIENCE], orgClaim: "org" };

let key: Signing;
let server: KeyServer;
let tokens: Tokens;

beforeAll(async () => {
  key = await signing("one");
  server = await KeyServer.start(key.jwk);
  tokens = new Tokens(await openKeys(server.url, { log }), RULES);
});
afterAll(() => server.stop());

const refused = async (text: string, by: Tokens = tokens): Promise<string> => {
  const read = await by.read(text);
  if (!("refused" in read)) throw new Error(`let in ${read.user}`);
  return read.refused;
};

describe("a token", () => {
  test("that is good names its bearer, its namespace and its end", async () => {
    const exp = now() + 60;
    expect(await tokens.read(await token(key, { exp }))).toEqual({
      user: "ada",
      namespace: { org: "acme", root: "amqp.@acme", cursors: "acme@", keys: "o.acme." },
      expiresAt: exp * 1000,
    });
  });

  test.each([
    ["of another issuer", { iss: "https://evil.test" }, /"iss"/],
    ["without an issuer", { iss: undefined }, /"iss"/],
    ["for another audience", { aud: "http" }, /"aud"/],
    ["without an audience", { aud: undefined }, /"aud"/],
    ["that is over", { exp: now() - 1 }, /expired/],
    ["that never ends", { exp: undefined }, /"exp"/],
    ["whose time is to come", { nbf: now() + 60 }, /"nbf"/],
    ["of nobody", { sub: undefined }, /"sub"/],
    ["of an empty subject", { sub: "" }, /sub/],
    ["of a subject that is no text", { sub: 7 }, /sub/],
    ["without an organisation", { org: undefined }, /org is missing/],
  ])("%s is refused", async (_, claims, why) => {
    expect(await refused(await token(key, claims))).toMatch(why);
  });

  test.each([
    ["a.>"],
    ["*"],
    [">"],
    [""],
    ["a b"],
    ["a.b"],
    ["@a"],
    ["a@b"],
    ["a/b"],
    ["%2F"],
    ["a\r\nPUB x"],
    ["a\0"],
    ["é"],
    ["a\n"],
    ["x".repeat(64)],
    [{ a: 1 }],
    [["acme"]],
    [1],
    [null],
    [true],
  ])("whose organisation is %j is refused", async (org) => {
    expect(await refused(await token(key, { org }))).toMatch(/org is/);
  });

  test("whose organisation is 63 octets long is good", async () => {
    expect(await tokens.read(await token(key, { org: "x".repeat(63) }))).toMatchObject({ user: "ada" });
  });

  test("that nobody signed is refused", async () => {
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: "ada", org: "acme", exp: now() + 60 };
    expect(await refused(new UnsecuredJWT(claims).encode())).toMatch(/alg|Invalid/i);
  });

  test("signed by HMAC with the public key is refused", async () => {
    const published = await importJWK(key.jwk, key.alg, { extractable: true });
    const secret = new TextEncoder().encode(await exportSPKI(published as Parameters<typeof exportSPKI>[0]));
    const claims = { iss: ISSUER, aud: AUDIENCE, sub: "ada", org: "acme", exp: now() + 60 };
    const forged = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: key.kid }).sign(secret);
    expect(await refused(forged)).toMatch(/alg/i);
  });

  test("signed by a stranger under a known key's name is refused", async () => {
    expect(await refused(await token(await signing("one")))).toMatch(/signature/i);
  });

  test("changed in any part is refused", async () => {
    const [header, , signature] = (await token(key)).split(".");
    const payload = (await token(key, { org: "other" })).split(".")[1];
    expect(await refused(`${header}.${payload}.${signature}`)).toMatch(/signature/i);
  });

  test.each([[""], ["guest"], ["a.b.c"], ["..."], ["\0"], ["x".repeat(16_000)]])(
    "that is none is refused: %#",
    async (text) => {
      expect(await refused(text)).not.toBe("");
    },
  );

  test("of an algorithm that is not on the list is refused, be it good", async () => {
    const strict = new Tokens(await openKeys(server.url, { log }), { ...RULES, algorithms: ["RS256"] });
    expect(await refused(await token(key), strict)).toMatch(/alg/i);
  });

  test("can never be allowed by a shared secret", async () => {
    expect(ALGORITHMS.some((name: string) => name.startsWith("HS") || name === "none")).toBe(false);
    const lax = new Tokens(await openKeys(server.url, { log }), { ...RULES, algorithms: ["HS256", "none"] });
    expect(await refused(await token(key), lax)).toMatch(/alg/i);
  });

  test("may call its organisation by the claim that is configured, and by no inherited name", async () => {
    const keys = await openKeys(server.url, { log });
    const tenant = new Tokens(keys, { ...RULES, orgClaim: "tenant" });
    expect(await tenant.read(await token(key, { tenant: "t1" }))).toMatchObject({ namespace: { org: "t1" } });
    const inherited = new Tokens(keys, { ...RULES, orgClaim: "toString" });
    expect(await refused(await token(key), inherited)).toMatch(/missing/);
  });

  test("why it is refused never tells what it holds", async () => {
    const text = await token(key, { aud: "secret-audience", org: "secret-org", sub: "secret-sub" });
    const why = await refused(text);
    for (const part of ["secret-", ...text.split(".")]) expect(why).not.toContain(part);
  });
});

describe("the key set behind a URL", () => {
  test("is fetched again for a key it does not hold, no sooner than allowed", async () => {
    const [first, second, third] = [await signing("a"), await signing("b"), await signing("c")];
    const keys = await KeyServer.start(first.jwk);
    const rotating = new Tokens(await openKeys(keys.url, { log, cooldown: 300 }), RULES);
    expect(await rotating.read(await token(first))).toMatchObject({ user: "ada" });
    keys.keys = [second.jwk];
    await new Promise((resolve) => setTimeout(resolve, 350));
    expect(await rotating.read(await token(second))).toMatchObject({ user: "ada" });
    const { asked } = keys;
    for (let n = 0; n < 20; n++) expect(await refused(await token(third), rotating)).toMatch(/key/i);
    expect(keys.asked).toBe(asked);
    await keys.stop();
  });

  test("refuses everybody it cannot check while the issuer is away, and nobody it can", async () => {
    const [known, fresh] = [await signing("a"), await signing("b")];
    const keys = await KeyServer.start(known.jwk);
    const away = new Tokens(await openKeys(keys.url, { log, cooldown: 0 }), RULES);
    keys.broken = true;
    expect(await away.read(await token(known))).toMatchObject({ user: "ada" });
    expect(await refused(await token(fresh), away)).not.toBe("");
    await keys.stop();
  });

  test("that cannot be read at boot fails closed and names the remedy", async () => {
    await expect(openKeys("http://127.0.0.1:1/keys", { log })).rejects.toThrow(/127\.0\.0\.1:1.*AMQP_JWT_JWKS/);
  });

  test("behind a URL with a password is refused, and the password not said", async () => {
    const error = await openKeys("http://user:hidden@127.0.0.1:1/keys", { log }).catch((thrown: Error) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toMatch(/AMQP_JWT_JWKS/);
    expect((error as Error).message).not.toContain("hidden");
  });
});

describe("the key set in a file", () => {
  test("is read again when it changes, and kept while it is no key set", async () => {
    const folder = await mkdtemp(join(tmpdir(), "amqp-keys-"));
    const path = join(folder, "keys.json");
    const [first, second] = [await signing("a"), await signing("b")];
    await writeFile(path, JSON.stringify({ keys: [first.jwk] }));
    const rotating = new Tokens(await openKeys(path, { log, cooldown: 0 }), RULES);
    expect(await rotating.read(await token(first))).toMatchObject({ user: "ada" });
    await writeFile(path, "{");
    expect(await rotating.read(await token(first))).toMatchObject({ user: "ada" });
    await writeFile(path, JSON.stringify({ keys: [second.jwk] }));
    expect(await rotating.read(await token(second))).toMatchObject({ user: "ada" });
    expect(await refused(await token(first), rotating)).toMatch(/key/i);
    await rm(folder, { recursive: true });
  });

  test("that is missing fails closed and names the remedy", async () => {
    await expect(openKeys("/nowhere/keys.json", { log })).rejects.toThrow(/ENOENT.*AMQP_JWT_JWKS/s);
  });
});
