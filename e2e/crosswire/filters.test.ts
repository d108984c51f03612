// What @amqp/translator says of filters, asked of a real nats-server: JetStream takes every antichain as a consumer's
// filters, refuses every pair of which one is a subset of the other (10138), and delivers exactly what `matches` says.
// The sets are drawn with a fixed seed, so that a failure is the same failure again.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { antichain, isFault, isSubset, matches, toFilters, toSubject } from "@amqp/translator";
import {
  AckPolicy,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const KEYS = ["", "a", "b", "a.a", "a.b", "b.a", "é.b", "a.b.c", "$JS.a.b", "a.a.a.a"];
const EXCHANGES = ["", "t", "u"];

let folder: string;
let server: ChildProcess;
let nats: NatsConnection;
let manager: JetStreamManager;
let stream: JetStreamClient;
const published: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "amqp-filters-"));
  const options = ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder, "-js", "-sd", folder];
  server = spawn(process.env.NATS_SERVER_BIN ?? "nats-server", options, { stdio: "ignore" });
  nats = await connect({ servers: await serverUrl() });
  manager = await jetstreamManager(nats);
  stream = jetstream(nats);
  await manager.streams.add({ name: "AMQP", subjects: ["amqp.>"], storage: "memory" });
  for (const exchange of EXCHANGES) {
    for (const key of KEYS) {
      const subject = toSubject(exchange, key);
      if (isFault(subject)) throw new Error(subject.text);
      await stream.publish(subject);
      published.push(subject);
    }
  }
});

afterAll(async () => {
  await nats?.close();
  server?.kill("SIGKILL");
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

const words = fc.array(fc.constantFrom("a", "b", "*"), { maxLength: 3 });
const bindingKey = fc.tuple(words, fc.boolean()).map(([head, rest]) => [...head, ...(rest ? ["#"] : [])].join("."));
const bindings = fc.array(
  fc.tuple(fc.constantFrom("direct", "fanout", "topic", "topic"), fc.constantFrom(...EXCHANGES), bindingKey),
  { minLength: 1, maxLength: 8 },
);

describe("JetStream and the translator agree", () => {
  it("takes the antichain of any bindings as filters, and delivers what matches says, once", async () => {
    for (const [round, drawn] of fc.sample(bindings, { numRuns: 60, seed: 1326 }).entries()) {
      const given = drawn.flatMap(([kind, exchange, key]) => {
        const filters = toFilters(kind, exchange, key);
        return isFault(filters) ? [] : filters;
      });
      const filters = antichain([...given, "amqp._.own"]);
      const expected = published.filter((subject) =>
        [...given, "amqp._.own"].some((filter) => matches(filter, subject)),
      );
      expect(await delivered(`round-${round}`, filters), JSON.stringify(filters)).toEqual(expected);
    }
  });

  it("refuses with 10138 exactly the pairs of which one is a subset of the other", async () => {
    const filter = fc
      .tuple(fc.array(fc.constantFrom("a", "*"), { maxLength: 2 }), fc.constantFrom("a", "*", ">"))
      .map(([head, last]) => ["amqp", ...head, last].join("."));
    const pairs = fc.sample(fc.tuple(filter, filter), { numRuns: 120, seed: 10138 });
    const verdicts = { taken: 0, refused: 0 };
    for (const [round, [a, b]] of pairs.entries()) {
      const refused = await delivered(`pair-${round}`, [a, b]).then(
        () => false,
        (error: { code?: number }) => error.code === 10138 || Promise.reject(error),
      );
      expect(refused, `${a} and ${b}`).toBe(isSubset(a, b) || isSubset(b, a));
      verdicts[refused ? "refused" : "taken"]++;
    }
    expect(verdicts.taken).toBeGreaterThan(20);
    expect(verdicts.refused).toBeGreaterThan(20);
  });

  it("stores a key of 255 octets behind an exchange of 128", async () => {
    for (const key of ["k".repeat(255), `${"k.".repeat(127)}k`, "é".repeat(127)]) {
      const subject = toSubject("x".repeat(128), key);
      if (isFault(subject)) throw new Error(subject.text);
      const { seq } = await stream.publish(subject);
      expect((await manager.streams.getMessage("AMQP", { seq }))?.subject).toBe(subject);
      await manager.streams.deleteMessage("AMQP", seq);
    }
  });
});

/** The subjects that a consumer with these filters delivers, in order, asked of the server. */
async function delivered(name: string, filters: readonly string[]): Promise<string[]> {
  await manager.consumers.add("AMQP", {
    durable_name: name,
    ack_policy: AckPolicy.None,
    mem_storage: true,
    filter_subjects: [...filters],
  });
  try {
    const consumer = await stream.consumers.get("AMQP", name);
    const { num_pending } = await consumer.info();
    const subjects: string[] = [];
    if (num_pending === 0) return subjects;
    for await (const message of await consumer.fetch({ max_messages: num_pending, expires: 5_000 })) {
      subjects.push(message.subject);
    }
    expect((await consumer.info()).num_pending).toBe(0);
    return subjects;
  } finally {
    await manager.consumers.delete("AMQP", name);
  }
}

/** Waits for the file in which nats-server writes the address it chose. */
async function serverUrl(): Promise<string> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const file = (await readdir(folder)).find((name) => name.endsWith(".ports"));
    const text = file === undefined ? "" : await readFile(join(folder, file), "utf8");
    const url = text === "" ? undefined : (JSON.parse(text) as { nats?: string[] }).nats?.[0];
    if (url !== undefined) return url;
    await sleep(25);
  }
  throw new Error("nats-server wrote no ports file within 5 s; is NATS_SERVER_BIN set, or nats-server on the PATH?");
}
