import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fence } from "../src/fence.ts";
import { openBucket } from "../src/nats.ts";
import { encodeRecord } from "../src/records.ts";
import { Topology } from "../src/topology.ts";
import { NatsServer } from "./nats-server.ts";
import { queueRecord } from "./records.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("Fence", () => {
  it("asks once for all calls of one turn", async () => {
    let asked = 0;
    const fence = new Fence(async () => {
      asked++;
      await turn();
    });
    const passes = [fence.pass(), fence.pass()];
    await Promise.resolve();
    passes.push(fence.pass());
    await Promise.all(passes);
    expect(asked).toBe(1);
  });

  it("never answers a call by a request that was sent before it", async () => {
    let now = 0;
    const asked: number[] = [];
    const fence = new Fence(async () => {
      asked.push(now);
      const pause = now % 3;
      for (let i = 0; i < pause; i++) await turn();
    });
    const passes: Promise<void>[] = [];
    for (; now < 300; now++) {
      const called = now;
      const before = asked.length;
      passes.push(
        fence.pass().then(() => {
          expect(asked.slice(before).some((sent) => sent >= called)).toBe(true);
        }),
      );
      await turn();
    }
    await Promise.all(passes);
    expect(asked.length).toBeGreaterThan(50);
  });

  it("fails those who wait for a failed request, and no one after them", async () => {
    let fail: boolean = true;
    const fence = new Fence(() => (fail ? Promise.reject(new Error("no answer")) : Promise.resolve()));
    const [one, two] = await Promise.allSettled([fence.pass(), fence.pass()]);
    expect([one.status, two.status]).toEqual(["rejected", "rejected"]);
    fail = false;
    await fence.pass();
  });
});

describe("a fence of the topology", () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterAll(() => server.stop());

  it("shows every write that was confirmed to somebody else before it: 2,000 rounds among concurrent writers", async () => {
    const lost = (error: Error): void => {
      throw error;
    };
    const topology = await Topology.open(await openBucket(await server.connect()), { root: "amqp", lost });
    const other = await openBucket(await server.connect());
    let running: boolean = true;
    // Keys written over and over: what the watch has not been sent yet is superseded, and comes out of order.
    const noise = Array.from({ length: 4 }, async (_, writer) => {
      const bucket = await openBucket(await server.connect());
      for (let i = 0; running; i++) {
        const key = `q.noise-${writer}-${i % 3}`;
        const { revision } = await bucket.read(key);
        if (i % 7 === 0 && revision > 0) await bucket.remove(key, revision);
        else if (revision === 0) await bucket.create(key, encodeRecord(queueRecord()));
        else await bucket.update(key, encodeRecord(queueRecord({ from: i })), revision);
      }
    });
    let revision = 0;
    let missed = 0;
    for (let round = 1; round <= 2_000; round++) {
      const record = encodeRecord(queueRecord({ from: round }));
      // The same key again at once: the first of the two is often superseded before it was sent.
      const written = await (revision === 0 ? other.create("q.q", record) : other.update("q.q", record, revision));
      const again = other.update("q.q", encodeRecord(queueRecord({ from: round + 0.5 })), Number(written));
      await topology.fence();
      if ((topology.queue("q")?.from ?? 0) < round) missed++;
      revision = Number(await again);
    }
    running = false;
    await Promise.all(noise);
    expect(missed).toBe(0);
    await topology.close();
  }, 60_000);

  it("shows what a flood of writes had reached, of which the watch is sent only what is not superseded yet", async () => {
    const lost = (error: Error): void => {
      throw error;
    };
    const bucket = await openBucket(await server.connect(), { name: "flood" });
    const topology = await Topology.open(bucket, { root: "amqp", lost });
    const writer = await server.connect();
    const reader = await openBucket(await server.connect(), { name: "flood" });
    let running: boolean = true;
    // One hot key among others: what was sent of the others comes before what superseded the hot one.
    const flood = (async () => {
      for (let i = 1; running; i++) {
        const key = i % 3 === 0 ? "q.hot" : `q.cold-${i % 20}`;
        writer.publish(`$KV.flood.${key}`, encodeRecord(queueRecord({ from: i })));
        if (i % 50 === 0) await writer.flush();
      }
    })();
    let missed = 0;
    for (let round = 0; round < 100; round++) {
      const { value } = await reader.read("q.hot");
      const known = value === undefined ? 0 : (JSON.parse(Buffer.from(value).toString()) as { from: number }).from;
      await topology.fence();
      if ((topology.queue("hot")?.from ?? 0) < known) missed++;
    }
    running = false;
    await flood;
    // Not every revision was seen: otherwise this test shows nothing.
    expect(topology.version).toBeLessThan(topology.revision);
    expect(missed).toBe(0);
    await topology.close();
  }, 60_000);

  it("says that the bucket is lost where its revisions went back", async () => {
    const lost: Error[] = [];
    const connection = await server.connect();
    const bucket = await openBucket(connection, { name: "back" });
    const topology = await Topology.open(bucket, { root: "amqp", lost: (error) => lost.push(error) });
    await topology.createQueue("q", queueRecord());
    await connection.request("$JS.API.STREAM.DELETE.KV_back");
    await openBucket(connection, { name: "back" });
    await expect(topology.fence()).rejects.toThrow("went back");
    expect(lost).toHaveLength(1);
    await topology.close();
  });
});
