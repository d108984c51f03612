/**
 * nats-server out of its own release archive, for Linux machines without apt. The archive is pinned by version and
 * sha256 (the checksums are those that the official container image is built with): one that differs is not unpacked.
 * Used by the finder; macOS has Homebrew before this.
 */
import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "./command.ts";

/** A release and its archives: Node's `platform-arch` → the archive's name for it, and its sha256. */
export interface Release {
  readonly version: string;
  /** Where the archives are; the version's folder and the archive's name follow. */
  readonly base: string;
  readonly archives: Readonly<Record<string, { readonly name: string; readonly sha256: string }>>;
}

export const RELEASE: Release = {
  version: "2.14.0",
  base: "https://github.com/nats-io/nats-server/releases/download",
  archives: {
    "linux-x64": { name: "linux-amd64", sha256: "3d8b74dfad39af184c765a6dd120441ed1c648d6672eddf6b304f222661251b8" },
    "linux-arm64": { name: "linux-arm64", sha256: "ce7dc5f7d97b70dabc38b13157fed28d7d06227860676143c15c62c5c297996c" },
    "linux-arm": { name: "linux-arm7", sha256: "3b66be75d9e5ef2ec5c3c66012ff3d03401996c8aa463291ccdd38307b9cac52" },
    "linux-s390x": { name: "linux-s390x", sha256: "4801bf5e945c50b654f1151129a1e28671bf892cd8a6401ff4b53dd4788e21d7" },
    "linux-ppc64": {
      name: "linux-ppc64le",
      sha256: "8534c79f8eb341ce9dd45fb63ddec40dbbcfd0ba28747e1f9eae35fb93b2381e",
    },
  },
};

/**
 * Fetches, checks and unpacks the release for `machine` (`linux-x64`) into `folder`.
 * @returns the path of the binary in it
 */
export async function fetchRelease(
  release: Release,
  machine: string,
  folder: string,
  tell: (line: string) => void,
): Promise<string> {
  const archive = release.archives[machine];
  if (archive === undefined) throw new Error(`no archive is pinned for ${machine}`);
  const stem = `nats-server-v${release.version}-${archive.name}`;
  const address = `${release.base}/v${release.version}/${stem}.tar.gz`;
  tell(`fetching nats-server ${release.version} from ${address}, checksum pinned`);
  const response = await fetch(address, { signal: AbortSignal.timeout(120_000) }).catch((error: unknown) => {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    throw new Error(`${address} cannot be fetched (${cause})`);
  });
  if (!response.ok) throw new Error(`${address} answers ${response.status}`);
  const octets = Buffer.from(await response.arrayBuffer());
  const sha256 = createHash("sha256").update(octets).digest("hex");
  if (sha256 !== archive.sha256) throw new Error(`${address} has the sha256 ${sha256}, pinned is ${archive.sha256}`);
  writeFileSync(join(folder, "release.tar.gz"), octets);
  await command("tar", ["-xzf", "release.tar.gz"], { cwd: folder });
  const binary = join(folder, stem, "nats-server");
  if (!existsSync(binary)) throw new Error(`${address} holds no nats-server`);
  return binary;
}
