/**
 * Finds a nats-server that is new enough, or fetches one: NATS_SERVER_BIN, PATH, an earlier fetch, the system's own apt,
 * Homebrew, the pinned release archive, in this order. Works from the repository and from an npm install alike; the
 * embedded server uses it, and the repository's scripts for its tests. What was tried and why it would not do is kept
 * for the one error at the end.
 */
import { copyFile, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { BootError } from "./boot-error.ts";
import { cacheFolder } from "./folders.ts";
import { command } from "./nats-server/command.ts";
import { fetchFromApt } from "./nats-server/debian.ts";
import { fetchRelease, RELEASE } from "./nats-server/release.ts";
import { askVersion, compareVersions, MINIMUM_VERSION } from "./nats-server/version.ts";

export { MINIMUM_VERSION } from "./nats-server/version.ts";

/** A nats-server that can be used. */
export interface FoundNatsServer {
  readonly path: string;
  /** `2.15.1` */
  readonly version: string;
  /** Where it came from, for the log. */
  readonly from: string;
}

/** What the finder looks at. All has a default; tests set it. */
export interface FindOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Told each thing worth a line: an old server that is skipped, a fetch that begins. */
  readonly tell?: (line: string) => void;
  /** Where fetched servers are kept. */
  readonly cache?: string;
  /** Ways to fetch one, each into an empty folder; by default apt and the release archive. */
  readonly fetchers?: readonly Fetcher[];
}

/** A way to get a nats-server from elsewhere. Throws where it cannot, with the reason. */
export interface Fetcher {
  readonly name: string;
  /** @returns the path of the binary, inside `folder` */
  fetch(folder: string, tell: (line: string) => void): Promise<string>;
}

const FETCHERS: readonly Fetcher[] = [
  { name: "apt", fetch: fetchFromApt },
  { name: "Homebrew", fetch: findInHomebrew },
  {
    name: "release archive",
    fetch: (folder, tell) => fetchRelease(RELEASE, `${process.platform}-${process.arch}`, folder, tell),
  },
];

const REMEDY =
  "put one on PATH, or set NATS_SERVER_BIN to its path, or set NATS_URL to a server that runs already and needs none here";

/**
 * Finds one or fetches it.
 * @throws BootError where NATS_SERVER_BIN is set and will not do, or where nothing was found: all that was tried
 */
export async function findNatsServer(options: FindOptions = {}): Promise<FoundNatsServer> {
  const { env = process.env, tell = () => {}, fetchers = FETCHERS } = options;
  const cache = options.cache ?? join(cacheFolder({ env, platform: process.platform, home: homedir() }), "nats-server");
  if (env.NATS_SERVER_BIN !== undefined && env.NATS_SERVER_BIN !== "") return fromVariable(env.NATS_SERVER_BIN);
  const tried: string[] = [];
  return (
    (await fromPath(env.PATH ?? "", tell, tried)) ??
    (await fromCache(cache, tried)) ??
    (await fromFetch(fetchers, cache, tell, tried)) ??
    fail(tried)
  );
}

/** A name set by hand is meant: another server in its place would hide the mistake. */
async function fromVariable(path: string): Promise<FoundNatsServer> {
  const asked = await askVersion(path);
  if ("version" in asked) return { path, version: asked.version, from: "NATS_SERVER_BIN" };
  throw new BootError(`NATS_SERVER_BIN=${path} ${asked.unusable}`, "correct it, or unset it to have one found");
}

async function fromPath(
  path: string,
  tell: (line: string) => void,
  tried: string[],
): Promise<FoundNatsServer | undefined> {
  const name = process.platform === "win32" ? "nats-server.exe" : "nats-server";
  const before = tried.length;
  for (const folder of path.split(delimiter).filter((text) => text !== "")) {
    const candidate = join(folder, name);
    const asked = await askVersion(candidate);
    if ("version" in asked) return { path: candidate, version: asked.version, from: "PATH" };
    if (asked.unusable.includes("ENOENT") || asked.unusable.includes("ENOTDIR")) continue;
    tell(`${candidate} ${asked.unusable}: skipped`);
    tried.push(`PATH: ${candidate} ${asked.unusable}`);
  }
  if (tried.length === before) tried.push("PATH holds none");
  return undefined;
}

async function fromCache(cache: string, tried: string[]): Promise<FoundNatsServer | undefined> {
  const versions = await readdir(cache).catch(() => []);
  const newest = versions.filter((name) => /^\d/.test(name)).sort((a, b) => compareVersions(b, a));
  for (const name of newest) {
    const path = join(cache, name, "nats-server");
    const asked = await askVersion(path);
    if ("version" in asked) return { path, version: asked.version, from: "an earlier fetch" };
  }
  tried.push(`no earlier fetch is kept in ${cache}`);
  return undefined;
}

async function fromFetch(
  fetchers: readonly Fetcher[],
  cache: string,
  tell: (line: string) => void,
  tried: string[],
): Promise<FoundNatsServer | undefined> {
  for (const fetcher of fetchers) {
    let folder: string | undefined;
    try {
      await mkdir(cache, { recursive: true });
      folder = await mkdtemp(join(cache, "fetching-"));
      const binary = await fetcher.fetch(folder, tell);
      const asked = await askVersion(binary);
      if ("unusable" in asked) throw new Error(`its nats-server ${asked.unusable}`);
      return { path: await keep(binary, folder, cache, asked.version), version: asked.version, from: fetcher.name };
    } catch (error) {
      tried.push(`${fetcher.name}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    }
  }
  return undefined;
}

/** Moves a fetched binary to its place in one step, for another process may fetch at the same time. */
async function keep(binary: string, folder: string, cache: string, version: string): Promise<string> {
  if (!binary.startsWith(folder)) return binary;
  const place = join(cache, version);
  const whole = join(folder, "whole");
  await mkdir(whole);
  await copyFile(binary, join(whole, "nats-server"));
  await rename(whole, place).catch(async (error: unknown) => {
    if (!("version" in (await askVersion(join(place, "nats-server"))))) throw error;
  });
  return join(place, "nats-server");
}

/** Homebrew keeps its own copies, so nothing is fetched: what it has installed is used where it stands. */
async function findInHomebrew(): Promise<string> {
  const prefix = (await command("brew", ["--prefix", "nats-server"])).trim();
  const binary = join(prefix, "bin", "nats-server");
  const asked = await askVersion(binary);
  if ("unusable" in asked) throw new Error("nats-server is not installed (brew install nats-server)");
  return binary;
}

function fail(tried: readonly string[]): never {
  throw new BootError(`no nats-server ${MINIMUM_VERSION} or newer was found (${tried.join("; ")})`, REMEDY);
}
