/**
 * Prints the README's generated tables into it: what is not implemented (from the refusals) and the settings.
 *
 * Used by: `node scripts/readme.mjs` after a change of either; e2e/readme/tables.test.ts holds README.md to them.
 * Plain JavaScript over the built packages, like the other scripts.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const README = new URL("../README.md", import.meta.url);

/** Markdown table rows may hold no bare bar. */
const cell = (text) => text.replaceAll("|", "\\|");

/** The table of what is not implemented. */
function refusalsTable(rows) {
  const lines = rows.map(({ what, class: by, answer }) => `| ${cell(what)} | ${by} | ${cell(answer)} |`);
  return ["| Not implemented | Class | The answer says |", "|---|---|---|", ...lines].join("\n");
}

/** The table of settings. */
function settingsTable(settings) {
  const lines = Object.values(settings).map(({ env, flag, value, fallback, about }) => {
    const shown = fallback === undefined || fallback === "" ? "" : `\`${fallback}\``;
    const spelled = cell(value === undefined ? flag : `${flag} ${value}`);
    return `| \`${env}\` | \`${spelled}\` | ${shown} | ${cell(about)} |`;
  });
  return ["| Variable | Flag | Default | What it is |", "|---|---|---|---|", ...lines].join("\n");
}

/** The text between the marks `<!-- name -->` and `<!-- /name -->`, replaced. */
function replaceBetween(text, name, content) {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const from = text.indexOf(open);
  const to = text.indexOf(close);
  if (from < 0 || to < from) throw new Error(`README.md lacks the marks ${open} … ${close}`);
  return `${text.slice(0, from + open.length)}\n\n${content}\n\n${text.slice(to)}`;
}

/** README.md as it should be. */
export function readmeWith(text, rows, settings) {
  return replaceBetween(replaceBetween(text, "refusals", refusalsTable(rows)), "settings", settingsTable(settings));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const built = (path) => new URL(`../${path}`, import.meta.url).href;
  const { notImplemented } = await import(built("packages/broker/dist/index.js"));
  const { SETTINGS } = await import(built("apps/gateway/dist/settings.js"));
  const before = readFileSync(README, "utf8");
  writeFileSync(fileURLToPath(README), readmeWith(before, notImplemented(), SETTINGS));
}
