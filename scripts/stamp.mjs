/**
 * Stamps: a file that holds the hash of what a step was made from, written after the step succeeded. A step whose stamp
 * still matches has nothing to do. Used by toolchain.mjs and workspace.mjs.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** The hash of the contents of `files` (URLs) and of `words`. */
export function fingerprint(files, ...words) {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(file)).update("\0");
  for (const word of words) hash.update(String(word)).update("\0");
  return hash.digest("hex");
}

/** Does the stamp at `file` (a URL) hold `value`? */
export function stamped(file, value) {
  try {
    return readFileSync(file, "utf8") === value;
  } catch {
    return false;
  }
}

/** Takes the stamp away before its step begins: a step cut short must not look done. */
export function unstamp(file) {
  rmSync(file, { force: true });
}

/** Writes the stamp of a step that succeeded. */
export function stamp(file, value) {
  mkdirSync(dirname(fileURLToPath(file)), { recursive: true });
  writeFileSync(file, value);
}
