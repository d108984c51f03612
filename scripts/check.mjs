/**
 * `npm run check`: everything CI refuses besides failing tests. Format, lint and the import rules (biome), types
 * (tsc -b, tests included), and, for each package, the tarball that would be published (publint, are-the-types-wrong,
 * its licence). Every check runs even when an earlier one failed, so that one run names all there is to do. Used by
 * run.mjs.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { step } from "./child.mjs";
import { packageFolders } from "./workspace.mjs";

/** @returns {Promise<number>} the exit code: 0 when every check passed */
export async function check(env) {
  const failed = [];
  const pass = async (what, command, ...args) => {
    try {
      await step(what, command, args, env, { quiet: true });
      console.log(`check: ${what}: passed`);
    } catch (error) {
      failed.push(what);
      console.error(`check: ${error.message}`);
    }
  };
  await pass("biome", "pnpm", "exec", "biome", "check", "--error-on-warnings", ".");
  await pass("tsc", "pnpm", "exec", "tsc", "-b");
  await pass("tsc of the tests", "pnpm", "exec", "tsc", "-p", "scripts/tsconfig.json");
  for (const folder of packageFolders()) {
    const path = fileURLToPath(folder);
    const name = path.split("/").at(-2);
    const packed = mkdtempSync(join(tmpdir(), "amqp-pack-"));
    try {
      await pass(`pack ${name}`, "pnpm", "--dir", path, "pack", "--pack-destination", packed);
      const tarball = readdirSync(packed).map((file) => join(packed, file))[0] ?? path;
      await pass(`publint ${name}`, "pnpm", "exec", "publint", "run", tarball, "--strict");
      await pass(`attw ${name}`, "pnpm", "exec", "attw", tarball, "--profile", "esm-only");
      await pass(`licence of ${name}`, "tar", "-tf", tarball, "package/LICENSE");
    } finally {
      rmSync(packed, { recursive: true, force: true });
    }
  }
  console.log(failed.length === 0 ? "check: all passed" : `check: failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
}
