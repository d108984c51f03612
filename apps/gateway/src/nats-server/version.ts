/**
 * Versions of nats-server: reading, comparing, and asking a binary for its own. Used by the finder, and by nats.ts for
 * the version a server tells.
 */
import { execFile } from "node:child_process";

/**
 * The oldest nats-server that serves: consumers with several filters came with 2.10, and filters that overlap in part
 * deliver a message once from 2.12.5 on.
 */
export const MINIMUM_VERSION = "2.12.5";

/** A version's three numbers, or undefined where `text` holds none. A pre-release counts as its release. */
function parseVersion(text: string): readonly [number, number, number] | undefined {
  const found = /(\d+)\.(\d+)\.(\d+)/.exec(text);
  return found === null ? undefined : [Number(found[1]), Number(found[2]), Number(found[3])];
}

/** Below 0 where `a` is older than `b`, above 0 where it is newer. What is no version is older than all. */
export function compareVersions(a: string, b: string): number {
  const left = parseVersion(a) ?? [-1, 0, 0];
  const right = parseVersion(b) ?? [-1, 0, 0];
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2];
}

/** Is a server of this version new enough? */
export function newEnough(version: string): boolean {
  return compareVersions(version, MINIMUM_VERSION) >= 0;
}

/** A nats-server that was asked, or why it is none that can be used. */
export type Asked = { readonly version: string } | { readonly unusable: string };

/** Runs `path --version` and reads the answer, `nats-server: v2.15.1`. */
export function askVersion(path: string): Promise<Asked> {
  return new Promise((resolve) => {
    execFile(path, ["--version"], { timeout: 10_000 }, (error, stdout) => {
      if (error !== null) {
        const why = "code" in error && typeof error.code === "string" ? error.code : error.message.split("\n")[0];
        resolve({ unusable: `cannot be run (${why})` });
        return;
      }
      const numbers = /nats-server/.test(stdout) ? parseVersion(stdout) : undefined;
      if (numbers === undefined) resolve({ unusable: "is no nats-server" });
      else if (newEnough(numbers.join("."))) resolve({ version: numbers.join(".") });
      else resolve({ unusable: `is ${numbers.join(".")}, ${MINIMUM_VERSION} or newer is needed` });
    });
  });
}
