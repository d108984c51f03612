// The table of differences is whole and alive: every row has a test that asks about it.
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DIFFERENCES } from "./differences.ts";

const folder = new URL("./", import.meta.url);
const tests = readdirSync(folder)
  .filter((name) => name.endsWith(".test.ts") && name !== "differences.test.ts")
  .map((name) => readFileSync(new URL(name, folder), "utf8"))
  .join("\n");

it.each(Object.keys(DIFFERENCES))("a test asks about %s", (id) => {
  expect(tests).toContain(`differs("${id}")`);
});
