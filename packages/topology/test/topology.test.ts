import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Bucket } from "../src/bucket.ts";
import { openBucket } from "../src/nats.ts";
import { Topology } from "../src/topology.ts";
import { NatsServer } from "./nats-server.ts";
import { exchangeRecord, queueRecord } from "./records.ts";

const root = "amqp";
const lost = (error: Error): void => {
  throw error;
};

function defined<T>(value: T | "conflict" | undefined): T {
  if (value === undefined || value === "conflict") throw new Error(`expected an entity, not ${value}`);
  return value as T;
}

describe("Topology", () => {
  let server: NatsServer;
  let bucket: Bucket;
  let other: Bucket;
  let buckets = 0;
  const opened: Topology[] = [];

  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((topology) => topology.close()));
  });
  afterAll(() => server.stop());

  async function openBoth(): Promise<[Topology, Topology]> {
    const name = `amqp${buckets++}`;
    bucket = await openBucket(await server.connect(), { name });
    other = await openBucket(await server.connect(), { name });
    return [await open(bucket), await open(other)];
  }

  async function open(from: Bucket): Promise<Topology> {
    const topology = await Topology.open(from, { root, lost });
    opened.push(topology);
    return topology;
  }

  it("opens on an empty bucket, knowing nothing", async () => {
    const [one] = await openBoth();
    expect([...one.queues()]).toEqual([]);
    expect(one.revision).toBe(0);
    expect(one.fleet()).toEqual({ clean: false, revision: 0 });
    await one.fence();
  });

  it("has a write in its own mirror when the write resolves, and in another's after a fence", async () => {
    const [one, two] = await openBoth();
    const queue = defined(await one.createQueue("q", queueRecord({ state: "making" })));
    expect(one.queue("q")).toEqual(queue);
    expect(queue.id).toBe(queue.revision);
    await two.fence();
    expect(two.queue("q")).toEqual(queue);
    const ready = defined(await two.updateQueue(defined(two.queue("q")), { state: "ready" }));
    expect(ready).toMatchObject({ state: "ready", id: queue.id });
    expect(ready.revision).toBeGreaterThan(queue.revision);
    await one.fence();
    expect(one.queue("q")).toEqual(ready);
  });

  it("answers a lost race with conflict, and then knows who won", async () => {
    const [one, two] = await openBoth();
    const [a, b] = await Promise.all([
      one.createExchange("x", exchangeRecord({ arguments: "one" })),
      two.createExchange("x", exchangeRecord({ arguments: "two" })),
    ]);
    const [won] = [a, b].filter((result) => result !== "conflict");
    expect([a, b].filter((result) => result === "conflict")).toHaveLength(1);
    expect(one.exchange("x")).toEqual(won);
    expect(two.exchange("x")).toEqual(won);
    const stale = defined(one.exchange("x"));
    defined(await two.updateExchange(stale, { state: "deleting" }));
    expect(await one.updateExchange(stale, { internal: true })).toBe("conflict");
    expect(await one.removeExchange(stale)).toBe("conflict");
    expect(one.exchange("x")).toMatchObject({ state: "deleting", internal: false });
  });

  it("makes a new life of what was removed, with an identity of its own", async () => {
    const [one, two] = await openBoth();
    const first = defined(await one.createQueue("q", queueRecord()));
    expect(await one.removeQueue(first)).toBe("removed");
    expect(one.queue("q")).toBeUndefined();
    expect(await one.removeQueue(first)).toBe("conflict");
    await two.fence();
    const second = defined(await two.createQueue("q", queueRecord()));
    expect(second.id).toBeGreaterThan(first.id);
    const later = defined(await two.updateQueue(second, { from: 7 }));
    const third = await open(other);
    expect(third.queue("q")).toEqual(later);
    expect(later.id).toBe(second.id);
  });

  it("keeps what a newer version wrote into a record", async () => {
    const [one, two] = await openBoth();
    const record = { ...queueRecord(), colour: "blue", nested: { z: 1, a: [2] } };
    defined(await one.createQueue("q", record));
    await two.fence();
    defined(await two.updateQueue(defined(two.queue("q")), { from: 3 }));
    const { value } = await bucket.read("q.q");
    expect(JSON.parse(Buffer.from(value ?? []).toString())).toMatchObject({ ...record, from: 3 });
  });

  it("writes, replaces and removes a binding", async () => {
    const [one] = await openBoth();
    const { id: exchangeId } = defined(await one.createExchange("x", exchangeRecord()));
    const { id: queueId } = defined(await one.createQueue("q", queueRecord()));
    const at = { queue: "q", exchange: "x", key: "a.#", arguments: "" };
    const open = { from: 5, queueId, exchangeId, kind: "topic" } as const;
    const bound = defined(await one.writeBinding(at, [open], undefined));
    expect(one.binding("q", "x", "a.#", "")).toEqual(bound);
    expect(one.bindingsOf("q")).toEqual([bound]);
    expect(one.bindingsFrom("x")).toEqual([bound]);
    expect(one.routes("x", "a.b", "amqp.x.a.b")).toBe(true);
    expect(await one.writeBinding(at, [], undefined)).toBe("conflict");
    const closed = defined(await one.writeBinding(at, [{ ...open, until: 9 }], bound));
    expect(one.routes("x", "a.b", "amqp.x.a.b")).toBe(false);
    expect(one.holds("q", "amqp.x.a.b", 9)).toBe(true);
    expect(one.filters("q")).toEqual(["amqp._.q", "amqp.x.a", "amqp.x.a.>"]);
    expect(await one.removeBinding(closed)).toBe("removed");
    expect(one.holds("q", "amqp.x.a.b", 9)).toBe(false);
    expect(one.bindingsFrom("x")).toEqual([]);
  });

  it("remembers whether the fleet stopped cleanly", async () => {
    const [one, two] = await openBoth();
    const race = await Promise.all([one.writeFleet(false), two.writeFleet(false)]);
    expect(race.filter((result) => result === "conflict")).toHaveLength(1);
    expect(one.fleet()).toMatchObject({ clean: false });
    expect(await two.writeFleet(true)).toMatchObject({ clean: true });
    await one.fence();
    expect(one.fleet()).toEqual(two.fleet());
  });

  it("tells its listener of changes after they are in the mirror", async () => {
    const [one] = await openBoth();
    const told: unknown[] = [];
    one.listen({
      queueChanged: (name, queue, before) => {
        expect(one.queue(name)).toBe(queue);
        told.push([name, queue?.state, before?.state]);
      },
      bindingChanged: (queue, binding) => {
        expect(one.binding("q", "x", "k", "")).toBe(binding);
        told.push([queue, binding?.intervals.length]);
      },
    });
    const queue = defined(await one.createQueue("q", queueRecord({ state: "making" })));
    const at = { queue: "q", exchange: "x", key: "k", arguments: "" };
    await one.removeBinding(defined(await one.writeBinding(at, [], undefined)));
    await one.removeQueue(defined(await one.updateQueue(queue, { state: "ready" })));
    expect(told).toEqual([
      ["q", "making", undefined],
      ["q", 0],
      ["q", undefined],
      ["q", "ready", "making"],
      ["q", undefined, "ready"],
    ]);
  });
});
