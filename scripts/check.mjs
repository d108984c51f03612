/**
 * `npm run check`: everything CI refuses besides failing tests. Format, lint and the import rules (biome), types
 * (tsc -b, tests included), and, for each package, the tarball that would be published (publint, are-the-types-wrong).
 * Every check runs even when an earlier one failed, so that one run names all there is to do. Used by run.mjs.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./child.mjs";
import { packageFolders } from "./workspace.mjs";

/** @returns {Promise<number>} the exit code: 0 when every check passed */
export async function check(env) {
  const failed = [];
  const pass = async (what, ...args) => {
    const code = await run("pnpm", args, { env });
    if (code !== 0) failed.push(what);
  };
  await pass("biome", "exec", "biome", "check", "--error-on-warnings", ".");
  await pass("tsc", "exec", "tsc", "-b");
  await pass("tsc of the tests", "exec", "tsc", "-p", "scripts/tsconfig.json");
  for (const folder of packageFolders()) {
    const path = fileURLToPath(folder);
    const name = path.split("/").at(-2);
    const packed = mkdtempSync(join(tmpdir(), "amqp-pack-"));
    try {
      await pass(`pack ${name}`, "--dir", path, "pack", "--pack-destination", packed);
      const tarball = readdirSync(packed).map((file) => join(packed, file))[0] ?? path;
      await pass(`publint ${name}`, "exec", "publint", "run", tarball, "--strict");
      await pass(`attw ${name}`, "exec", "attw", tarball, "--profile", "esm-only");
    } finally {
      rmSync(packed, { recursive: true, force: true });
    }
  }
  console.log(failed.length === 0 ? "check: all passed" : `check: failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
}
