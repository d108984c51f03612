import { describe, expect, it } from "vitest";
import { createLog, type LogLevel } from "../src/index.ts";

function logged(level: LogLevel, write: (log: ReturnType<typeof createLog>) => void): string[] {
  const lines: string[] = [];
  write(createLog(level, { write: (line) => lines.push(line) }));
  return lines;
}

describe("the log", () => {
  it("shows no credential, at the top of what is logged or inside", () => {
    const secrets = { password: "hunter2", token: "hunter2", seed: "hunter2", response: "hunter2" };
    const lines = logged("trace", (log) => {
      log.info(secrets, "at the top");
      log.info({ login: secrets, bus: { login: secrets } }, "inside");
      log.child({ peer: "127.0.0.1:1" }).info({ login: secrets }, "of a child");
    });
    expect(lines).toHaveLength(3);
    expect(lines.join("")).not.toContain("hunter2");
    expect(lines.join("")).toContain("[redacted]");
  });

  it("writes one JSON object a line, its level a word", () => {
    const [line = ""] = logged("info", (log) => log.warn({ port: 1 }, "two\nlines"));
    expect(JSON.parse(line)).toMatchObject({ level: "warn", port: 1, msg: "two\nlines" });
    expect(line.trim()).not.toContain("\n");
  });

  it("keeps quiet below its level", () => {
    expect(logged("warn", (log) => log.info("no"))).toEqual([]);
    expect(logged("silent", (log) => log.fatal("no"))).toEqual([]);
  });
});
