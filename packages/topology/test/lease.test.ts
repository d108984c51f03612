import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Bucket } from "../src/bucket.ts";
import { Lease } from "../src/lease.ts";
import { openBucket } from "../src/nats.ts";
import { encodeRecord } from "../src/records.ts";
import { Topology } from "../src/topology.ts";
import { NatsServer } from "./nats-server.ts";

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5);
}

function held(lease: Lease | "conflict"): Lease {
  if (lease === "conflict") throw new Error("the key is taken");
  return lease;
}

describe("Lease", () => {
  let server: NatsServer;
  let bucket: Bucket;
  let watching: Topology;
  let seen: (string | boolean)[] = [];

  beforeAll(async () => {
    server = await NatsServer.start();
    bucket = await openBucket(await server.connect());
    const lost = (error: Error): void => {
      throw error;
    };
    watching = await Topology.open(await openBucket(await server.connect()), { root: "amqp", lost });
    watching.listen({ queueChanged: () => {}, replicaChanged: (id, alive) => seen.push(id, alive) });
  });
  beforeEach(async () => {
    await watching.fence();
    seen = [];
  });
  afterAll(async () => {
    await watching.close();
    await server.stop();
  });

  it("is held through many times its time to live, and released at once", async () => {
    let lapsed = 0;
    const lease = held(await Lease.take(bucket, "r.a", { id: "a" }, { ttl: 2_000, lapsed: () => lapsed++ }));
    expect(await Lease.take(bucket, "r.a", { id: "b" }, { ttl: 1_000, lapsed: () => {} })).toBe("conflict");
    for (let i = 0; i < 50; i++) {
      await sleep(100);
      expect(lease.held()).toBe(true);
    }
    expect(watching.replicas().get("a")?.value).toEqual({ id: "a" });
    const released = lease.release();
    expect(lease.held()).toBe(false);
    await released;
    await watching.fence();
    expect(watching.replicas().size).toBe(0);
    expect(seen).toEqual(["a", true, "a", false]);
    expect(lapsed).toBe(0);
    await lease.release();
    const again = held(await Lease.take(bucket, "r.a", { id: "a2" }, { ttl: 1_000, lapsed: () => {} }));
    await again.release();
  });

  it("is known to be lost before the server lets the key go, which then reaches every mirror", async () => {
    // Its refreshes never arrive: the holder is cut off and must find out by its own clock.
    let calls = 0;
    const cut = cutOff(bucket, () => calls++ > 0);
    let lapsed = 0;
    const lease = held(await Lease.take(cut, "r.c", { id: "c" }, { ttl: 1_000, lapsed: () => lapsed++ }));
    await until(() => watching.replicas().has("c"));
    while (lease.held()) {
      expect(watching.replicas().has("c")).toBe(true);
      await sleep(5);
    }
    expect(lapsed).toBe(1);
    await until(() => !watching.replicas().has("c"));
    expect(seen).toEqual(["c", true, "c", false]);
    expect(lapsed).toBe(1);
  });

  it("is never renewed after it lapsed, whatever still arrives", async () => {
    // The answers come, but after the deadline: the key lives on at the server, and the lease does not.
    const late: Bucket = slow(bucket, 1_200);
    let lapsed = 0;
    const lease = held(await Lease.take(late, "r.d", { id: "d" }, { ttl: 1_000, lapsed: () => lapsed++ }));
    await until(() => lapsed === 1);
    for (let i = 0; i < 30; i++) {
      expect(lease.held()).toBe(false);
      await sleep(50);
    }
    expect(lapsed).toBe(1);
    await lease.release();
    await until(() => !watching.replicas().has("d"));
  });

  it("lapses at once where somebody else wrote or deleted the key, and leaves it to him", async () => {
    let lapsed = 0;
    const lease = held(await Lease.take(bucket, "r.e", { id: "e" }, { ttl: 3_000, lapsed: () => lapsed++ }));
    const { revision } = await bucket.read("r.e");
    const theirs = await bucket.update("r.e", encodeRecord({ id: "other" }), revision);
    await until(() => lapsed === 1);
    expect(lease.held()).toBe(false);
    await lease.release();
    expect((await bucket.read("r.e")).revision).toBe(theirs);
  });

  it("survives a refresh whose answer was lost, and knows its own write again", async () => {
    let calls = 0;
    const deaf: Bucket = {
      ...bound(bucket),
      refresh: async (key, value, revision, ttl) => {
        const written = await bucket.refresh(key, value, revision, ttl);
        if (calls++ === 1) throw new Error("the answer was lost");
        return written;
      },
    };
    let lapsed = 0;
    const lease = held(await Lease.take(deaf, "r.f", { id: "f" }, { ttl: 2_000, lapsed: () => lapsed++ }));
    await sleep(5_000);
    expect(lease.held()).toBe(true);
    expect(lapsed).toBe(0);
    await lease.release();
    expect((await bucket.read("r.f")).value).toBeUndefined();
  });

  it("takes no time to live that the bus cannot keep", async () => {
    const lapsed = (): void => {};
    await expect(Lease.take(bucket, "r.g", {}, { ttl: 900, lapsed })).rejects.toThrow(RangeError);
    await expect(Lease.take(bucket, "r.g", {}, { ttl: 5_001, lapsed })).rejects.toThrow(RangeError);
  });

  it("outlives a restart of the server that is shorter than it, and not one that is longer", async () => {
    let lapsed = 0;
    const lease = held(await Lease.take(bucket, "r.h", { id: "h" }, { ttl: 4_000, lapsed: () => lapsed++ }));
    await server.restart(300);
    await sleep(4_500);
    expect(lease.held()).toBe(true);
    await server.restart(4_500);
    expect(lease.held()).toBe(false);
    await until(() => lapsed === 1);
    await until(() => !watching.replicas().has("h"));
  });
});

/** The same bucket's verbs as a plain object, so that a test may change one of them. */
function bound(bucket: Bucket): Bucket {
  return {
    within: (prefix) => bound(bucket.within(prefix)),
    create: (key, value) => bucket.create(key, value),
    update: (key, value, revision) => bucket.update(key, value, revision),
    remove: (key, revision) => bucket.remove(key, revision),
    read: (key) => bucket.read(key),
    refresh: (key, value, revision, ttl) => bucket.refresh(key, value, revision, ttl),
    lastRevision: () => bucket.lastRevision(),
    watch: (listener) => bucket.watch(listener),
  };
}

function cutOff(bucket: Bucket, isCut: () => boolean): Bucket {
  const none = (): Promise<never> => Promise.reject(new Error("no answer"));
  return {
    ...bound(bucket),
    refresh: (key, value, revision, ttl) => (isCut() ? none() : bucket.refresh(key, value, revision, ttl)),
    read: none,
  };
}

/** Delays the answers of every refresh but the first. */
function slow(bucket: Bucket, milliseconds: number): Bucket {
  let first = true;
  return {
    ...bound(bucket),
    refresh: async (key, value, revision, ttl) => {
      const written = await bucket.refresh(key, value, revision, ttl);
      if (!first) await sleep(milliseconds);
      first = false;
      return written;
    },
  };
}
