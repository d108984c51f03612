/**
 * The import rules of the house (CONTRIBUTING.md) are linter rules. Here each is shown a file that breaks it and one
 * that keeps it, laid out in a folder of its own under this repository's biome.json: biome reports nothing on standard
 * input, and a violating file must not stand in the tree itself.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = new URL("../..", import.meta.url);
const biome = createRequire(import.meta.url).resolve("@biomejs/biome/bin/biome");
const folder = mkdtempSync(join(tmpdir(), "imports-"));

/** file, what it imports, and a piece of the message it must earn (absent: it is allowed). */
const cases: readonly (readonly [file: string, from: string, message?: string])[] = [
  ["packages/codec/src/frames.ts", "./reader.ts"],
  ["packages/codec/src/frames.ts", "@amqp/translator", "depend on nothing"],
  ["packages/codec/src/frames.ts", "node:fs", "depend on nothing"],
  ["packages/codec/src/frames.ts", "../../translator/src/names.ts", "reaches into another"],
  ["packages/translator/src/names.ts", "./fault.ts"],
  ["packages/translator/src/names.ts", "@amqp/codec", "depend on nothing"],
  ["packages/topology/src/topology.ts", "@amqp/translator"],
  ["packages/topology/src/topology.ts", "@amqp/codec", "topology imports the translator"],
  ["packages/topology/src/topology.ts", "@amqp/broker", "topology imports the translator"],
  ["packages/topology/src/nats.ts", "@amqp/broker", "topology imports the translator"],
  ["packages/broker/src/core/queue.ts", "@amqp/topology"],
  ["packages/broker/src/core/queue.ts", "@amqp/translator"],
  ["packages/broker/src/amqp091/channel.ts", "@amqp/codec"],
  ["packages/broker/src/amqp091/channel.ts", "../core/queue.ts"],
  ["packages/broker/src/amqp091/channel.ts", "@amqp/gateway", "broker imports codec"],
  ["packages/broker/src/nats.ts", "@amqp/gateway", "broker imports codec"],
  ["packages/broker/src/server.ts", "@amqp/gateway", "broker imports codec"],
  ["packages/topology/src/topology.ts", "@nats-io/kv", "know the NATS client"],
  ["packages/broker/src/amqp091/channel.ts", "@nats-io/nats-core", "know the NATS client"],
  ["packages/broker/src/amqp091/channel.ts", "@nats-io/nats-core/internal", "know the NATS client"],
  ["packages/broker/src/core/queue.ts", "@nats-io/jetstream", "know the NATS client"],
  ["packages/broker/src/server.ts", "@nats-io/jetstream", "know the NATS client"],
  ["apps/gateway/src/boot.ts", "@nats-io/transport-node", "know the NATS client"],
  ["packages/topology/src/nats.ts", "@nats-io/kv"],
  ["packages/broker/src/nats/pulls.ts", "@nats-io/jetstream"],
  ["apps/gateway/src/nats.ts", "@nats-io/transport-node"],
  ["packages/broker/test/queue.test.ts", "@nats-io/jetstream"],
  ["e2e/crosswire/native.test.ts", "@nats-io/jetstream"],
  ["packages/broker/src/server.ts", "node:net"],
  ["packages/broker/src/server.ts", "node:tls"],
  ["packages/broker/src/amqp091/connection.ts", "node:net", "open sockets"],
  ["packages/broker/src/core/fleet.ts", "node:tls", "open sockets"],
  ["packages/broker/src/nats.ts", "net", "open sockets"],
  ["apps/gateway/src/boot.ts", "node:net", "open sockets"],
  ["apps/gateway/src/health.ts", "node:http"],
  ["packages/broker/test/server.test.ts", "node:net"],
  ["packages/broker/src/core/broker.ts", "../amqp091/channel.ts", "speaks no protocol's terms"],
  ["packages/broker/src/core/broker.ts", "@amqp/codec", "speaks no protocol's terms"],
  ["apps/gateway/src/boot.ts", "@amqp/broker"],
  ["apps/gateway/src/boot.ts", "@amqp/broker/dist/server.js", "reaches into another"],
  ["packages/broker/src/amqp091/channel.ts", "../../../codec/src/frames.ts", "reaches into another"],
  ["packages/broker/test/queue.test.ts", "../../topology/src/topology.ts", "reaches into another"],
  ["packages/broker/test/queue.test.ts", "../src/core/queue.ts"],
  ["e2e/clients/amqplib.test.ts", "../../packages/codec/src/frames.ts", "reaches into another"],
];

const forms = {
  "a value import": (from: string, name: string) => `import { x as ${name} } from "${from}";`,
  "a type import": (from: string, name: string) => `import type { X as ${name} } from "${from}";`,
  "a re-export": (from: string, name: string) => `export { x as ${name} } from "${from}";`,
  "a dynamic import": (from: string, name: string) => `export const ${name} = () => import("${from}");`,
} as const;
type Form = keyof typeof forms;

/** The diagnostics by place, `file:line`. A file's imports stand on lines of their own, so one run of biome shows all. */
const found = new Map<string, string>();
const lines = new Map<string, string[]>();
const places = new Map<string, string>();

cases.forEach(([file, from], index) => {
  for (const [form, write] of Object.entries(forms)) {
    const written = lines.get(file) ?? [];
    lines.set(file, written);
    written.push(write(from, `x${written.length}`));
    places.set(`${index} ${form}`, `${file}:${written.length}`);
  }
});

beforeAll(() => {
  const config = JSON.parse(readFileSync(new URL("biome.json", root), "utf8")) as Record<string, unknown>;
  delete config.vcs;
  delete config.$schema;
  writeFileSync(join(folder, "biome.json"), JSON.stringify(config));
  for (const [file, written] of lines) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), `${written.join("\n")}\n`);
  }
  const only = ["lint", "--only=style/noRestrictedImports", "--reporter=github", "--max-diagnostics=none", "."];
  const run = spawnSync(process.execPath, [biome, ...only], { cwd: folder, encoding: "utf8" });
  for (const line of run.stdout.split("\n")) {
    const place = /file=(?<file>[^,]+),line=(?<line>\d+).*?::(?<message>.*)$/.exec(line)?.groups;
    if (place === undefined) continue;
    const at = `${String(place.file).split(`${folder}/`).pop()}:${place.line}`;
    found.set(at, `${found.get(at) ?? ""}${place.message}\n`);
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(Object.keys(forms) as Form[])("%s", (form) => {
  it.each(cases.map(([file, from, message], index) => ({ file, from, message, index })))(
    "$file from $from",
    ({ message, index }) => {
      const told = found.get(places.get(`${index} ${form}`) ?? "");
      if (message === undefined) expect(told).toBeUndefined();
      else expect(told).toContain(message);
    },
  );
});
