// The code blocks of docs/security.md: what is documented is what is tested.
import { readFileSync } from "node:fs";

const DOCUMENT = readFileSync(new URL("../../docs/security.md", import.meta.url), "utf8");

/** The block that is fenced with that language and name, as in "```conf nats.conf". */
export function documented(language: string, name: string): string {
  const fence = `\`\`\`${language} ${name}\n`;
  const from = DOCUMENT.indexOf(fence);
  if (from < 0) throw new Error(`docs/security.md has no block ${name}`);
  return DOCUMENT.slice(from + fence.length, DOCUMENT.indexOf("\n```", from));
}
