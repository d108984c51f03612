// pika and kombu, unchanged, as Debian packages them: their checks are in python/.
import { describe, expect, it } from "vitest";
import { missing, runScript } from "./script.ts";

const PYTHON = "/usr/bin/python3";

describe.each([
  ["pika", "python/pika_checks.py", 12],
  ["kombu", "python/kombu_checks.py", 8],
])("%s", (library, file, count) => {
  const reason = missing(library, [PYTHON, "-c", `import ${library}`]);

  it("does what its users do", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const { checks, code, stderr } = await runScript(PYTHON, file);
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(checks.length, stderr).toBe(count);
    expect(code, stderr).toBe(0);
  }, 90_000);
});
