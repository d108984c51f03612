/**
 * The readers of single settings: a word, a number, a switch; what may not be is one line that names the setting and a
 * remedy. Used by config.ts and auth-config.ts, which put them together. Separate because a value's form is one thing and
 * what it does another.
 */
import { type Gathered, type Given, SETTINGS, type SettingName } from "./settings.ts";

/** A value that may not be: thrown by the readers, caught once in parseConfig. */
export class BadSetting extends Error {}

/** The setting's value; empty where it has none. */
export function required(given: Gathered, name: SettingName): Given {
  return given[name] ?? { text: "", from: SETTINGS[name].flag };
}

/** A whole number of that range. */
export function integer(given: Given, least: number, most: number): number {
  const value = /^\d{1,16}$/.test(given.text) ? Number(given.text) : Number.NaN;
  if (value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`;
  throw bad(given, `is not ${quoted(given)}`, { instead: `use a whole number, ${range}` });
}

/** A stream's, bucket's or domain's name: one word of a subject. */
export function word(given: Given): string {
  if (/^[A-Za-z0-9_-]{1,128}$/.test(given.text)) return given.text;
  throw bad(given, `is not ${quoted(given)}`, { instead: "use 1 to 128 of A-Z, a-z, 0-9, _ and -" });
}

/** A switch: 1 or 0. */
export function toggle(given: Given): boolean {
  if (["1", "true"].includes(given.text)) return true;
  if (["0", "false"].includes(given.text)) return false;
  throw bad(given, `is not ${quoted(given)}`, { instead: "use 1 or 0" });
}

/** The value, cut, as a message shows it. */
export function quoted({ text }: Given): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}...` : text);
}

/** The error of a setting: what is wrong, and what to do instead. */
export function bad(given: Given, what: string, { instead }: { readonly instead: string }): BadSetting {
  return new BadSetting(`${given.from} ${what}: ${instead}`);
}

/** 127.0.0.0/8, ::1, localhost: only this machine reaches them. */
export function isLoopback(host: string): boolean {
  const name = URL.parse(`http://${host.includes(":") ? `[${host}]` : host}`)?.hostname ?? "";
  return name === "localhost" || name === "[::1]" || /^127(\.\d+){3}$/.test(name);
}
