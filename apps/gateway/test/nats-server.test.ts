/** The finder. Here, and only here, nats-servers are shell scripts: what is tested is which of them is taken. */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { aptSources } from "../src/nats-server/debian.ts";
import { fetchRelease, RELEASE } from "../src/nats-server/release.ts";
import { compareVersions, newEnough } from "../src/nats-server/version.ts";
import { type Fetcher, type FindOptions, findNatsServer } from "../src/nats-server.ts";

let folder: string;
let told: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "finder-"));
  told = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program at `path` below the folder that says it is nats-server of that version. */
function server(path: string, version: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  chmodSync(file, 0o755);
  return file;
}

const gives = (name: string, version: string): Fetcher => ({
  name,
  fetch: async (into) => {
    writeFileSync(join(into, "n"), `#!/bin/sh\necho "nats-server: v${version}"\n`);
    chmodSync(join(into, "n"), 0o755);
    return join(into, "n");
  },
});
const fails = (name: string): Fetcher => ({ name, fetch: () => Promise.reject(new Error("no way")) });

function find(options: FindOptions): ReturnType<typeof findNatsServer> {
  const cache = join(folder, "cache");
  return findNatsServer({ cache, fetchers: [], tell: (line) => told.push(line), ...options });
}

describe("NATS_SERVER_BIN", () => {
  it("is taken before anything else", async () => {
    const path = server("mine", "2.12.5");
    server("bin/nats-server", "2.15.1");
    const found = await find({ env: { NATS_SERVER_BIN: path, PATH: join(folder, "bin") } });
    expect(found).toEqual({ path, version: "2.12.5", from: "NATS_SERVER_BIN" });
  });

  it.each([
    ["2.9.10", "is 2.9.10, 2.12.5 or newer is needed"],
    ["2.12.4", "is 2.12.4, 2.12.5 or newer is needed"],
  ])("fails when it is %s, although another would do", async (version, why) => {
    const path = server("mine", version);
    server("bin/nats-server", "2.15.1");
    const search = find({ env: { NATS_SERVER_BIN: path, PATH: join(folder, "bin") } });
    await expect(search).rejects.toThrow(`NATS_SERVER_BIN=${path} ${why}`);
  });

  it("fails when it is missing, or no nats-server", async () => {
    const missing = join(folder, "missing");
    await expect(find({ env: { NATS_SERVER_BIN: missing } })).rejects.toThrow(`${missing} cannot be run (ENOENT)`);
    await expect(find({ env: { NATS_SERVER_BIN: "/bin/true" } })).rejects.toThrow("/bin/true is no nats-server");
  });
});

describe("the order", () => {
  it("PATH comes before the cache, its first good one wins, and an old one is named and skipped", async () => {
    const old = server("old/nats-server", "2.9.10");
    const good = server("good/nats-server", "2.14.0");
    server("cache/2.15.1/nats-server", "2.15.1");
    const path = [join(folder, "none"), join(folder, "old"), join(folder, "good")].join(":");
    expect(await find({ env: { PATH: path } })).toEqual({ path: good, version: "2.14.0", from: "PATH" });
    expect(told).toEqual([`${old} is 2.9.10, 2.12.5 or newer is needed: skipped`]);
  });

  it("the cache's newest comes before a fetch", async () => {
    server("cache/2.9.10/nats-server", "2.9.10");
    const newest = server("cache/2.15.1/nats-server", "2.15.1");
    server("cache/2.14.0/nats-server", "2.14.0");
    const found = await find({ env: { PATH: "" }, fetchers: [gives("apt", "2.16.0")] });
    expect(found).toEqual({ path: newest, version: "2.15.1", from: "an earlier fetch" });
  });

  it("the first way to fetch that gives a good one is kept, whole, for the next time", async () => {
    const fetchers = [fails("apt"), gives("brew", "2.9.10"), gives("archive", "2.15.1"), fails("never")];
    const found = await find({ env: { PATH: "" }, fetchers });
    expect(found).toEqual({ path: join(folder, "cache/2.15.1/nats-server"), version: "2.15.1", from: "archive" });
    expect(readdirSync(join(folder, "cache"))).toEqual(["2.15.1"]);
    expect(await find({ env: { PATH: "" } })).toMatchObject({ path: found.path, from: "an earlier fetch" });
  });

  it("two processes that fetch at once both get one", async () => {
    const both = await Promise.all(
      [1, 2].map(() => find({ env: { PATH: "" }, fetchers: [gives("archive", "2.15.1")] })),
    );
    for (const { path } of both) expect(existsSync(path)).toBe(true);
    expect(readdirSync(join(folder, "cache"))).toEqual(["2.15.1"]);
  });

  it("one error lists all that was tried and what to do", async () => {
    const old = server("bin/nats-server", "2.9.10");
    const search = find({ env: { PATH: join(folder, "bin") }, fetchers: [fails("apt"), gives("archive", "2.1.0")] });
    const error = await search.then(String, (reason: Error) => reason.message);
    for (const part of [
      `PATH: ${old} is 2.9.10`,
      "no earlier fetch",
      "apt: no way",
      "archive: its nats-server is 2.1.0",
    ])
      expect(error).toContain(part);
    for (const remedy of ["put one on PATH", "NATS_SERVER_BIN", "NATS_URL"]) expect(error).toContain(remedy);
    expect(error).not.toContain("\n");
  });
});

describe("apt", () => {
  const keyring = (candidates: readonly string[]): string | undefined => candidates[0];

  it("takes each Debian mirror once, in order, and no security, backports or foreign archive", () => {
    const targets = [
      "Debian|Debian-Security|http://mirror.test/debian-security/",
      "Debian|Debian|http://mirror.test/debian/",
      "Debian|Debian Backports|http://mirror.test/debian/",
      "Debian|Debian|http://mirror.test/debian/",
      "Debian|Debian|http://other.test/debian/",
      "Node Source|Node Source|https://nodejs.test/",
      "",
    ];
    const signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
    expect(aptSources(targets.join("\n"), keyring).map(({ line }) => line)).toEqual([
      `deb ${signed} http://mirror.test/debian/ testing main`,
      `deb ${signed} http://other.test/debian/ testing main`,
    ]);
  });

  it("tells an archive by its address while apt has no lists", () => {
    const lines = aptSources("||http://mirror.test/debian\n||http://mirror.test/debian-security\n", keyring);
    expect(lines).toEqual([expect.objectContaining({ archive: "Debian", suite: "testing" })]);
  });

  it("trusts nothing without the archive's keyring", () => {
    expect(aptSources("Debian|Debian|http://mirror.test/debian/", () => undefined)).toEqual([]);
  });
});

describe("the release archive", () => {
  const name = "linux-amd64";

  async function serving<T>(body: Buffer, use: (base: string) => Promise<T>): Promise<T> {
    const http = createServer((request, response) => {
      response.statusCode = request.url === `/v9.9.9/nats-server-v9.9.9-${name}.tar.gz` ? 200 : 404;
      response.end(body);
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    try {
      return await use(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
    } finally {
      http.close();
    }
  }

  function archive(): Buffer {
    server(`packed/nats-server-v9.9.9-${name}/nats-server`, "9.9.9");
    execFileSync("tar", ["-czf", "a.tar.gz", "-C", "packed", `nats-server-v9.9.9-${name}`], { cwd: folder });
    return readFileSync(join(folder, "a.tar.gz"));
  }

  it("is unpacked when its sha256 is the pinned one", async () => {
    const body = archive();
    const sha256 = createHash("sha256").update(body).digest("hex");
    const path = await serving(body, (base) =>
      fetchRelease({ version: "9.9.9", base, archives: { here: { name, sha256 } } }, "here", folder, () => {}),
    );
    expect(execFileSync(path, { encoding: "utf8" })).toContain("v9.9.9");
  });

  it("is refused when it is another, and nothing of it is unpacked", async () => {
    const body = archive();
    const release = (base: string) => ({
      version: "9.9.9",
      base,
      archives: { here: { name, sha256: "0".repeat(64) } },
    });
    const fetched = serving(body, (base) => fetchRelease(release(base), "here", folder, () => {}));
    await expect(fetched).rejects.toThrow(/has the sha256 [0-9a-f]{64}, pinned is 0{64}/);
    expect(existsSync(join(folder, `nats-server-v9.9.9-${name}`))).toBe(false);
  });

  it("is pinned for what Node runs on, new enough, with checksums that are checksums", async () => {
    expect(newEnough(RELEASE.version)).toBe(true);
    for (const { sha256 } of Object.values(RELEASE.archives)) expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    await expect(fetchRelease(RELEASE, "plan9-mips", folder, () => {})).rejects.toThrow(
      "no archive is pinned for plan9",
    );
  });
});

describe("versions", () => {
  it("compare by number, not by text", () => {
    expect(compareVersions("2.9.10", "2.12.5")).toBeLessThan(0);
    expect(compareVersions("2.12.10", "2.12.5")).toBeGreaterThan(0);
    expect(compareVersions("v2.12.5", "2.12.5")).toBe(0);
    expect(newEnough("3.0.0")).toBe(true);
    expect(newEnough("")).toBe(false);
  });
});
