/**
 * The pinned toolchain: pnpm always, and Node where the machine's own is older than the packages ask for. Both come from
 * the npm registry by version and sha512 (tools/toolchain/package-lock.json), install no script, and stand in
 * tools/toolchain/node_modules. Not corepack, not pnpm's useNodeVersion: both download from elsewhere. Used by run.mjs.
 */
import { existsSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { root, step } from "./child.mjs";
import { fingerprint, stamp, stamped, unstamp } from "./stamp.mjs";

const home = new URL("tools/toolchain/", root);
const stampFile = new URL("node_modules/.stamp", home);

/** `engines.node` of every package. */
const least = [22, 13];

function newEnough(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > least[0] || (major === least[0] && minor >= least[1]);
}

/**
 * Installs the toolchain where its lock or the machine's Node changed.
 * @returns {Promise<{env: NodeJS.ProcessEnv, node: string}>} the environment with it on PATH, and the Node to run
 */
export async function toolchain() {
  const own = newEnough(process.versions.node);
  const files = ["package.json", "package-lock.json"].map((name) => new URL(name, home));
  const value = fingerprint(files, own ? "own" : "pinned", process.platform, process.arch);
  if (!stamped(stampFile, value)) {
    unstamp(stampFile);
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    const omit = own ? ["--omit=optional"] : ["--include=optional"];
    await step(
      "installing tools/toolchain",
      "npm",
      ["ci", ...quiet, ...omit, "--prefix", fileURLToPath(home)],
      process.env,
    );
    stamp(stampFile, value);
  }
  const bin = fileURLToPath(new URL("node_modules/.bin", home));
  const pinned = fileURLToPath(new URL("node_modules/.bin/node", home));
  if (!own && !existsSync(pinned)) {
    const version = `Node ${least.join(".")} or newer is needed, this is ${process.versions.node}`;
    throw new Error(
      `${version}, and none is pinned for ${process.platform}-${process.arch}: install one and run this again`,
    );
  }
  const node = own ? process.execPath : pinned;
  const path = [bin, dirname(node), process.env.PATH ?? ""].join(delimiter);
  return { env: { ...process.env, PATH: path, TURBO_TELEMETRY_DISABLED: "1" }, node };
}
