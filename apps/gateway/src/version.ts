/**
 * The gateway's own version, which its package.json holds alone: `--version` prints it and clients read it in
 * connection.start. Separate because main.ts and boot.ts both tell it.
 */
import { readFileSync } from "node:fs";

/** `1.2.3`. The file stands one folder up from src and from dist alike. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const known = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return known ? String(manifest.version) : "unknown";
}
