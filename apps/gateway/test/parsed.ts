/** What the configuration makes of a command line and an environment. Used by the tests of the settings. */
import { type Config, parseConfig } from "../src/config.ts";
import type { Machine } from "../src/folders.ts";

export type Env = Readonly<Record<string, string>>;

export const machine = (env: Env = {}): Machine => ({ env, platform: "linux", home: "/home/ada" });

export function config(argv: readonly string[], env: Env = {}): Config {
  const command = parseConfig(argv, machine(env));
  if (command.kind !== "run") throw new Error(`no configuration: ${JSON.stringify(command)}`);
  return command.config;
}

export function error(argv: readonly string[], env: Env = {}): string {
  const command = parseConfig(argv, machine(env));
  if (command.kind !== "error") throw new Error(`no error: ${JSON.stringify(command)}`);
  return command.text;
}
