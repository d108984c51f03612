/**
 * nats-server out of Debian's own archive, for machines that have apt: Debian 12 ships 2.9, which is too old, and
 * `testing` a new one that depends on libc6 alone. apt fetches it with state, cache and source list of its own in a
 * temporary folder: no root, nothing of the system's apt changes, and the archive's signature is checked. The mirror is
 * the one this machine's apt is set to, so that no host is named here. Used by the finder.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { command } from "./command.ts";

/** What an archive calls its newest suite, where in it nats-server is, and who signs it. */
interface Archive {
  readonly origin: string;
  readonly suite: string;
  readonly component: string;
  readonly keyrings: readonly string[];
  /** How its mirrors' addresses end, for a machine whose apt has no lists yet and cannot tell the origin. */
  readonly path: RegExp;
}

const KEYRINGS = "/usr/share/keyrings";

const ARCHIVES: readonly Archive[] = [
  {
    origin: "Debian",
    suite: "testing",
    component: "main",
    keyrings: [`${KEYRINGS}/debian-archive-keyring.gpg`, `${KEYRINGS}/debian-archive-keyring.pgp`],
    path: /\/debian\/?$/,
  },
  {
    origin: "Ubuntu",
    suite: "devel",
    component: "universe",
    keyrings: [`${KEYRINGS}/ubuntu-archive-keyring.gpg`],
    path: /\/ubuntu\/?$/,
  },
];

/** A source that apt could fetch from. */
export interface AptSource {
  readonly archive: string;
  readonly suite: string;
  /** The line of a sources.list. */
  readonly line: string;
}

/**
 * Reads what `apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)'` printed.
 * @param keyring the first keyring that is here, of those named
 * @returns each archive's mirrors, in apt's order, without repetition
 */
export function aptSources(
  targets: string,
  keyring: (candidates: readonly string[]) => string | undefined,
): readonly AptSource[] {
  const sources: AptSource[] = [];
  for (const row of new Set(targets.split("\n"))) {
    const [origin = "", label = "", uri = ""] = row.split("|");
    const archive = ARCHIVES.find((one) =>
      origin === "" ? one.path.test(uri) : one.origin === origin && label === origin,
    );
    const signedBy = archive && keyring(archive.keyrings);
    if (archive === undefined || signedBy === undefined || uri === "") continue;
    const line = `deb [signed-by=${signedBy}] ${uri} ${archive.suite} ${archive.component}`;
    if (!sources.some((source) => source.line === line))
      sources.push({ archive: archive.origin, suite: archive.suite, line });
  }
  return sources;
}

/**
 * Fetches and unpacks the package into `folder`.
 * @returns the path of the binary in it
 */
export async function fetchFromApt(folder: string, tell: (line: string) => void): Promise<string> {
  const sources = await findSources();
  if (sources.length === 0) throw new Error("apt knows no mirror of Debian or Ubuntu whose keyring is here");
  let last: unknown;
  for (const [index, source] of sources.entries()) {
    tell(`fetching nats-server from ${source.archive}'s ${source.suite} by apt, signature checked`);
    try {
      return await fetchFrom(source, join(folder, String(index)));
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

/** Before the first `apt-get update` apt has no lists and can tell no origin, only the addresses it is set to. */
async function findSources(): Promise<readonly AptSource[]> {
  const here = (candidates: readonly string[]): string | undefined => candidates.find((path) => existsSync(path));
  const listed = await command("apt-get", ["indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"]);
  const sources = aptSources(listed, here);
  if (sources.length > 0) return sources;
  return aptSources(await command("apt-get", ["indextargets", "--no-release-info", "--format", "||$(REPO_URI)"]), here);
}

async function fetchFrom(source: AptSource, folder: string): Promise<string> {
  for (const part of ["state/lists/partial", "cache/archives/partial", "unpacked"]) {
    mkdirSync(join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "sources.list"), `${source.line}\n`);
  const own = {
    "Dir::State": join(folder, "state"),
    "Dir::State::status": "/var/lib/dpkg/status",
    "Dir::Cache": join(folder, "cache"),
    "Dir::Etc::sourcelist": join(folder, "sources.list"),
    "Dir::Etc::sourceparts": "-",
    // As root apt would give its rights up and then not get at this folder.
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::Retries": "2",
    "DPkg::Lock::Timeout": "60",
  };
  const options = Object.entries(own).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await command("apt-get", [...options, "-q", "update"], { cwd: folder });
  await command("apt-get", [...options, "-q", "download", "nats-server"], { cwd: folder });
  const deb = (await readdir(folder)).find((name) => name.endsWith(".deb"));
  if (deb === undefined) throw new Error("apt-get downloaded no package");
  await command("dpkg-deb", ["-x", join(folder, deb), join(folder, "unpacked")]);
  const binary = ["usr/bin/nats-server", "usr/sbin/nats-server"].map((path) => join(folder, "unpacked", path));
  const found = binary.find((path) => existsSync(path));
  if (found === undefined) throw new Error("the package holds no nats-server");
  return found;
}
