import { describe, expect, it } from "vitest";
import { cacheFolder, dataFolder } from "../src/folders.ts";
import { config, type Env } from "./parsed.ts";

describe("the per-user folders", () => {
  it.each([
    ["linux", {}, "/h/.local/share/amqp-gateway", "/h/.cache/amqp-gateway"],
    ["linux", { XDG_DATA_HOME: "/d", XDG_CACHE_HOME: "/c" }, "/d/amqp-gateway", "/c/amqp-gateway"],
    ["linux", { XDG_DATA_HOME: "d" }, "/h/.local/share/amqp-gateway", "/h/.cache/amqp-gateway"],
    ["darwin", {}, "/h/Library/Application Support/amqp-gateway", "/h/Library/Caches/amqp-gateway"],
    ["win32", { LOCALAPPDATA: "C:\\L" }, "C:\\L\\amqp-gateway\\Data", "C:\\L\\amqp-gateway\\Cache"],
  ] as readonly (readonly [NodeJS.Platform, Env, string, string])[])("%s %j", (platform, env, data, cache) => {
    expect(dataFolder({ env, platform, home: "/h" })).toBe(data);
    expect(cacheFolder({ env, platform, home: "/h" })).toBe(cache);
  });

  it("AMQP_DATA_DIR names another", () => {
    expect(config([], { AMQP_DATA_DIR: "/d" }).bus).toEqual({ kind: "embedded", port: 4222, dataDir: "/d" });
  });
});
