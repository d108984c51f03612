/** README.md says what the code does: its tables are printed from the code, its example runs. */
import { readFileSync } from "node:fs";
import { notImplemented } from "@amqp/broker";
import { SETTINGS } from "@amqp/gateway";
import { expect, test } from "vitest";
import { readmeWith } from "../../scripts/readme.mjs";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

test("the tables are those of the code (node scripts/readme.mjs prints them)", () => {
  expect(readme).toBe(readmeWith(readme, notImplemented(), SETTINGS));
});
