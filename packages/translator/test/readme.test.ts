// The README's example says what happens: every `expression; // → value` in it is run and compared.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as translator from "../src/index.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const [, example = ""] = /```js\n(.*?)```/s.exec(readme) ?? [];
const [, imported = ""] = /^import \{(.*?)\} from "@amqp\/translator";$/ms.exec(example) ?? [];

describe("README", () => {
  it("shows an example whose every line is true", () => {
    const names = imported.match(/\w+/g) ?? [];
    // What stands before the arrow is an expression that ends its line; biome may have broken the import over several.
    const body = example
      .replace(/^import .*? from .*?;$/ms, "")
      .replace(/^(.*); \/\/ → (.*)$/gm, (_line, expression: string, value: string) => `same(${expression}, ${value});`);
    let compared = 0;
    const same = (actual: unknown, expected: unknown): void => {
      compared++;
      expect(actual).toEqual(expected);
    };
    const exported: Readonly<Record<string, unknown>> = translator;
    const run = new Function("same", ...names, body);
    run(same, ...names.map((name) => exported[name]));
    expect(compared).toBe(example.match(/→/g)?.length);
    expect(compared).toBeGreaterThan(10);
  });

  it("names every function that is exported", () => {
    const functions = Object.entries(translator).filter(([, value]) => typeof value === "function");
    for (const [name] of functions) expect(readme).toContain(`\`${name}`);
  });
});
