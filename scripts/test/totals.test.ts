/** The closing line of a test run, from real runs of vitest in a folder of their own. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));
const reporter = fileURLToPath(new URL("../totals.ts", import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "totals-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function run(files: Readonly<Record<string, string>>): { last: string | undefined; status: number | null } {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const args = ["run", "--root", folder, "--globals", "--reporter=default", `--reporter=${reporter}`];
  const { stdout, status } = spawnSync(process.execPath, [vitest, ...args], { cwd: folder, encoding: "utf8" });
  return { last: stdout.trim().split("\n").at(-1), status };
}

it("counts what passed, and only then succeeds", () => {
  expect(run({ "a.test.js": "test('a', () => {}); test('b', () => {}); test.skip('c', () => {});" })).toEqual({
    last: "2 passed, 0 failed, 1 skipped",
    status: 0,
  });
});

it("counts a file that cannot be loaded, and an error outside of any test, as failed", () => {
  const files = {
    "a.test.js": "test('a', () => {}); test('b', () => { throw new Error('b'); });",
    "b.test.js": "throw new Error('not loaded');",
    "c.test.js":
      "test('c', async () => { void Promise.reject(new Error('nobody')); await new Promise(setImmediate); });",
  };
  expect(run(files)).toEqual({ last: "2 passed, 3 failed, 0 skipped", status: 1 });
});

it("fails where there is no test", () => {
  expect(run({})).toEqual({ last: "0 passed, 0 failed, 0 skipped", status: 1 });
});
