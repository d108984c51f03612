// The tarball alone in an empty folder: it installs without a registry, compiles under strict settings, and runs.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../", import.meta.url));
const require = createRequire(import.meta.url);
const TSC = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");

const SAMPLE = `
import { CodecError, decodeMethod, encodeMethod, type Method, type MethodsOf } from "@amqp/codec";

// A class file of a broker: one handler for each method that a client may send, no more and no less.
type Handlers<Class extends "confirm" | "channel"> = {
  [N in MethodsOf<Class, "client">]: (method: Extract<Method, { name: N }>) => void;
};
export const confirm = { "confirm.select": (m) => void m.fields.nowait } satisfies Handlers<"confirm">;
// @ts-expect-error a method is missing
export const missing = {} satisfies Handlers<"confirm">;
export const serverOnly = {
  "confirm.select": () => {},
  // @ts-expect-error only a server sends this
  "confirm.select-ok": () => {},
} satisfies Handlers<"confirm">;

const method: Method = decodeMethod(
  encodeMethod("basic.publish", { exchange: "e", routingKey: "k", mandatory: true, immediate: false }),
);
if (method.name === "basic.publish") {
  const key: string = method.fields.routingKey;
  // @ts-expect-error another method's field
  method.fields.consumerTag;
  console.log(key, method.fields.mandatory);
}
// @ts-expect-error a field is missing
if (method.name === "tx.commit") encodeMethod("basic.publish", { exchange: "e" });
try {
  decodeMethod(new Uint8Array(4));
} catch (error) {
  if (error instanceof CodecError) console.log(error.replyCode);
}
`;

let folder: string;
let tarballs: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "amqp-codec-pack-"));
  tarballs = join(folder, "tarballs");
  const run = (args: string[], cwd: string) => execFileSync(process.execPath, args, { cwd, stdio: "pipe" });
  run([TSC, "-b", "packages/codec"], ROOT);
  execFileSync("pnpm", ["pack", "--pack-destination", tarballs], { cwd: PACKAGE, stdio: "pipe" });
  const [tarball = ""] = readdirSync(tarballs);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "alone", private: true, type: "module" }));
  const quiet = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  execFileSync("npm", ["install", ...quiet, join(tarballs, tarball)], { cwd: folder, stdio: "pipe" });
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("it brings its types and runs", () => {
  writeFileSync(join(folder, "sample.mts"), SAMPLE);
  const strict = ["--strict", "--module", "nodenext", "--target", "es2023", "--noUncheckedIndexedAccess"];
  const nodeTypes = ["--types", "node", "--typeRoots", join(ROOT, "node_modules/@types")];
  execFileSync(process.execPath, [TSC, ...strict, ...nodeTypes, "sample.mts"], { cwd: folder, stdio: "pipe" });
  const output = execFileSync(process.execPath, ["sample.mjs"], { cwd: folder, encoding: "utf8" });
  expect(output).toBe("k true\n503\n");
});

test("it depends on nothing and holds no test", () => {
  const installed = join(folder, "node_modules/@amqp/codec");
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  expect(manifest.dependencies).toBeUndefined();
  expect(JSON.stringify(manifest.exports)).not.toContain("@amqp/source");
  expect(readdirSync(join(folder, "node_modules"))).not.toContain("amqplib");
  expect(readdirSync(installed)).toEqual(expect.arrayContaining(["README.md", "dist", "package.json", "src"]));
  expect(readdirSync(installed)).not.toContain("test");
});

test("the examples of its README work as pasted", () => {
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const examples = [...readme.matchAll(/```js\n(.*?)```\n+(?:It prints:\n+)?```text\n(.*?)```/gs)];
  expect(examples.length).toBeGreaterThanOrEqual(3);
  examples.forEach(([, code = "", printed], i) => {
    writeFileSync(join(folder, `example-${i}.mjs`), code);
    expect(execFileSync(process.execPath, [`example-${i}.mjs`], { cwd: folder, encoding: "utf8" })).toBe(printed);
  });
});
