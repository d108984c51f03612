/**
 * The workspace: its packages installed from the lockfile, and built in the order of their dependencies. Used by run.mjs
 * and, for the list of packages, by check.mjs.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { root, step } from "./child.mjs";
import { fingerprint, stamp, stamped, unstamp } from "./stamp.mjs";

const stampFile = new URL("node_modules/.stamp", root);

/** The folders of the packages that are published, as URLs. */
export function packageFolders() {
  return ["packages/", "apps/"].flatMap((parent) =>
    readdirSync(new URL(parent, root), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && existsSync(new URL(`${parent}${entry.name}/package.json`, root)))
      .map((entry) => new URL(`${parent}${entry.name}/`, root)),
  );
}

/**
 * `pnpm install` from the lockfile. Skipped while the lockfile, the manifests and the Node are those of the last
 * successful install and every node_modules folder still stands: a second of each warm start.
 */
export async function installPackages(env) {
  const members = [root, new URL("e2e/", root), ...packageFolders()];
  const manifests = members.map((folder) => new URL("package.json", folder));
  const settings = ["pnpm-lock.yaml", "pnpm-workspace.yaml"].map((name) => new URL(name, root));
  const value = fingerprint([...settings, ...manifests], ...members);
  const linked = members.every((folder) => existsSync(new URL("node_modules", folder)) || !wantsModules(folder));
  if (linked && stamped(stampFile, value)) return;
  unstamp(stampFile);
  const how = ["--frozen-lockfile", "--prefer-offline", "--config.confirmModulesPurge=false", "--reporter=append-only"];
  await step("installing the packages", "pnpm", ["install", ...how, "--loglevel=warn"], env);
  stamp(stampFile, value);
}

/** pnpm makes a node_modules for each member that depends on something, and for no other. */
function wantsModules(folder) {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
  return dependencies !== undefined || devDependencies !== undefined;
}

/** `tsc -b` in each package that changed, by turbo. */
export async function buildPackages(env) {
  const how = ["--output-logs=errors-only", "--log-prefix=none", "--no-update-notifier"];
  await step("building the packages", "pnpm", ["exec", "turbo", "run", "build", ...how], env, { quiet: true });
}
