import { jetstreamManager, StorageType } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Bucket, Watch } from "../src/bucket.ts";
import { openBucket } from "../src/nats.ts";
import { NatsServer } from "./nats-server.ts";

const octets = (text: string): Uint8Array => Buffer.from(text);

describe("the bucket on JetStream", () => {
  let server: NatsServer;
  let connection: NatsConnection;
  let name = "";
  let bucket: Bucket;
  let buckets = 0;
  const watches: Watch[] = [];

  beforeAll(async () => {
    server = await NatsServer.start();
    connection = await server.connect();
  });
  afterEach(async () => {
    await Promise.all(watches.splice(0).map((watch) => watch.stop()));
  });
  afterAll(() => server.stop());

  async function fresh(): Promise<void> {
    name = `b${buckets++}`;
    bucket = await openBucket(connection, { name });
  }

  /** A watch that keeps what it was told, as text; `-` is a deletion. */
  async function follow(of: Bucket = bucket): Promise<{ told: string[]; watch: Watch; lost: Error[] }> {
    const told: string[] = [];
    const lost: Error[] = [];
    const watch = await of.watch({
      entry: ({ key, value }) => told.push(`${key}=${value === undefined ? "-" : Buffer.from(value).toString()}`),
      lost: (error) => lost.push(error),
    });
    watches.push(watch);
    return { told, watch, lost };
  }

  async function caughtUp(watch: Watch): Promise<void> {
    await watch.caughtUp(await bucket.lastRevision());
  }

  /** A write of this bucket's key with a time to live of a second; the server has none shorter. */
  async function short(key: string, fields: Record<string, string> = {}): Promise<void> {
    const block = headers();
    for (const [field, value] of Object.entries({ "Nats-TTL": "1s", ...fields })) block.set(field, value);
    await connection.request(`$KV.${name}.${key}`, "short", { headers: block, timeout: 2_000 });
  }

  const until = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
  };

  /** After a restart: what is asked while the connection is away is never sent. */
  const answers = (): Promise<void> =>
    until(() =>
      bucket.lastRevision().then(
        () => true,
        () => false,
      ),
    );

  it("compares and sets", async () => {
    await fresh();
    const first = await bucket.create("a", octets("1"));
    expect(first).toBe(1);
    expect(await bucket.create("a", octets("2"))).toBe("conflict");
    expect(await bucket.update("a", octets("2"), 7)).toBe("conflict");
    expect(await bucket.update("a", octets("2"), 1)).toBe(2);
    expect(await bucket.update("b", octets("2"), 1)).toBe("conflict");
    expect(await bucket.remove("a", 1)).toBe("conflict");
    expect(await bucket.remove("a", 2)).toBe(3);
    expect(await bucket.update("a", octets("3"), 2)).toBe("conflict");
    expect(await bucket.read("a")).toEqual({ key: "a", value: undefined, revision: 3 });
    expect(await bucket.read("b")).toEqual({ key: "b", value: undefined, revision: 0 });
    expect(await bucket.lastRevision()).toBe(3);
  });

  it("creates over the marker of a deletion and of an expiry", async () => {
    await fresh();
    await bucket.create("a", octets("1"));
    await bucket.remove("a", 1);
    expect(await bucket.create("a", octets("2"))).toBe(3);
    await bucket.refresh("b", octets("1"), 0, 1_000);
    await until(async () => (await bucket.read("b")).value === undefined);
    expect(await bucket.refresh("b", octets("2"), 0, 1_000)).toBeGreaterThan(4);
    expect(await bucket.create("b", octets("3"))).toBe("conflict");
  });

  it("tells the latest of each key, then the log in order, deletions and expiries included", async () => {
    await fresh();
    await bucket.create("a", octets("1"));
    await bucket.update("a", octets("2"), 1);
    await bucket.create("b", octets("1"));
    const { told, watch } = await follow();
    expect(told).toEqual(["a=2", "b=1"]);
    await bucket.remove("a", 2);
    await bucket.refresh("c", octets("1"), 0, 1_000);
    await caughtUp(watch);
    expect(told.slice(2)).toEqual(["a=-", "c=1"]);
    await until(() => told.length === 5);
    expect(told[4]).toBe("c=-");
  });

  it("never lets a key expire before its time, whatever its fraction of a second", async () => {
    await fresh();
    const gone = new Map<string, number>();
    const watch = await bucket.watch({
      entry: ({ key, value }) => value === undefined && gone.set(key, performance.now()),
      lost: () => {},
    });
    watches.push(watch);
    const sent = new Map<string, number>();
    for (let i = 0; i < 24; i++) {
      sent.set(`k${i}`, performance.now());
      await bucket.refresh(`k${i}`, octets("1"), 0, 1_000 + i * 40);
      await new Promise((resolve) => setTimeout(resolve, 43));
    }
    await until(() => gone.size === 24);
    for (let i = 0; i < 24; i++) {
      const lived = (gone.get(`k${i}`) ?? 0) - (sent.get(`k${i}`) ?? 0);
      expect(lived).toBeGreaterThanOrEqual(1_000 + i * 40);
      expect(lived).toBeLessThan(3_500);
    }
  });

  describe("catching up does not wait for entries that never come", () => {
    it("in an empty bucket", async () => {
      await fresh();
      const { told, watch } = await follow();
      await watch.caughtUp(0);
      await caughtUp(watch);
      expect(told).toEqual([]);
    });

    it("of a key that was written again before the watch began", async () => {
      await fresh();
      await bucket.create("a", octets("1"));
      for (let i = 1; i < 50; i++) await bucket.update("a", octets(String(i + 1)), i);
      const { told, watch } = await follow();
      await watch.caughtUp(25);
      await watch.caughtUp(50);
      expect(told).toEqual(["a=50"]);
    });

    it("after a purge of the stream, before the watch and during it", async () => {
      await fresh();
      const manager = await jetstreamManager(connection);
      await bucket.create("a", octets("1"));
      await bucket.create("b", octets("1"));
      await manager.streams.purge(`KV_${name}`);
      const { told, watch } = await follow();
      await caughtUp(watch);
      expect(told).toEqual([]);
      // The second purge may overtake the push of what it removes.
      await Promise.all([bucket.create("c", octets("1")), manager.streams.purge(`KV_${name}`)]);
      await caughtUp(watch);
      await bucket.create("d", octets("1"));
      await caughtUp(watch);
      expect(told.at(-1)).toBe("d=1");
    });

    it("of a key that expired, whose marker expired as well", async () => {
      await fresh();
      const manager = await jetstreamManager(connection);
      await manager.streams.update(`KV_${name}`, { subject_delete_marker_ttl: 1_000_000_000 });
      await bucket.create("stays", octets("1"));
      await short("goes");
      const info = async (): Promise<number> => (await manager.streams.info(`KV_${name}`)).state.messages;
      await until(async () => (await info()) === 2 && (await bucket.lastRevision()) === 3);
      await until(async () => (await info()) === 1);
      const { told, watch } = await follow();
      await caughtUp(watch);
      expect(told).toEqual(["stays=1"]);
    });
  });

  it("tells after a restart what was deleted meanwhile, also where no marker is left of it", async () => {
    await fresh();
    await bucket.create("purged", octets("1"));
    await bucket.create("kept", octets("1"));
    const { told, watch, lost } = await follow();
    const manager = await jetstreamManager(connection);
    await server.restart();
    await answers();
    await manager.streams.purge(`KV_${name}`, { filter: `$KV.${name}.purged` });
    await server.restart();
    await answers();
    await bucket.create("new", octets("1"));
    await caughtUp(watch);
    expect(lost).toEqual([]);
    expect(told.toSorted((a, b) => a.localeCompare(b))).toEqual(["kept=1", "new=1", "purged=-", "purged=1"]);
  });

  it("goes on through kill -9 and restart, again and again, losing and repeating nothing", async () => {
    await fresh();
    const { told, watch, lost } = await follow();
    for (let round = 0; round < 4; round++) {
      expect(await bucket.create(`k${round}`, octets("1"))).toBeTypeOf("number");
      await server.restart(round * 100);
      await answers();
      await caughtUp(watch);
    }
    expect(told).toEqual(["k0=1", "k1=1", "k2=1", "k3=1"]);
    expect(lost).toEqual([]);
  });

  it("makes another consumer within seconds where its own is taken away", async () => {
    await fresh();
    const { told, watch } = await follow();
    const manager = await jetstreamManager(connection);
    for await (const { name: consumer } of manager.consumers.list(`KV_${name}`)) {
      await manager.consumers.delete(`KV_${name}`, consumer);
    }
    await bucket.create("a", octets("1"));
    await caughtUp(watch);
    expect(told).toEqual(["a=1"]);
  });

  it("says that it is lost where the connection closes or the stream is deleted", async () => {
    await fresh();
    const own = await server.connect();
    const closed = await follow(await openBucket(own, { name }));
    await own.close();
    await until(() => closed.lost.length === 1);
    await expect(closed.watch.caughtUp(99)).rejects.toThrow("ended");
    const deleted = await follow();
    const waiting = expect(deleted.watch.caughtUp(99)).rejects.toThrow("deleted");
    await (await jetstreamManager(connection)).streams.delete(`KV_${name}`);
    await until(() => deleted.lost.length === 1);
    expect(deleted.lost[0]?.message).toContain("deleted");
    await waiting;
  });

  it("makes an existing bucket without expiry fit, and keeps what is in it", async () => {
    const kv = await new Kvm(connection).create("plain", { history: 5 });
    await kv.put("a", "1");
    await kv.put("a", "2");
    const opened = await openBucket(connection, { name: "plain" });
    const { config } = await (await jetstreamManager(connection)).streams.info("KV_plain");
    expect(config).toMatchObject({ allow_msg_ttl: true, max_msgs_per_subject: 1 });
    expect(config.subject_delete_marker_ttl).toBeGreaterThan(0);
    expect(Buffer.from((await opened.read("a")).value ?? []).toString()).toBe("2");
    expect(await opened.refresh("b", octets("1"), 0, 1_000)).toBe(3);
  });

  it("refuses a bucket that would lose the topology, naming the remedy", async () => {
    await new Kvm(connection).create("memory", { storage: StorageType.Memory });
    await expect(openBucket(connection, { name: "memory" })).rejects.toThrow(/kept in memory.*remove it/);
    await new Kvm(connection).create("expires", { ttl: 60_000 });
    await expect(openBucket(connection, { name: "expires" })).rejects.toThrow(/expires all of its keys.*remove it/);
  });

  it("takes thousands of writes at once", async () => {
    await fresh();
    const { told, watch } = await follow();
    const written = await Promise.all(Array.from({ length: 3_000 }, (_, i) => bucket.create(`k${i}`, octets("1"))));
    expect(new Set(written).size).toBe(3_000);
    await caughtUp(watch);
    expect(told).toHaveLength(3_000);
  });

  it("leaves no consumer behind when it stops", async () => {
    await fresh();
    const { watch } = await follow();
    const manager = await jetstreamManager(connection);
    expect((await manager.streams.info(`KV_${name}`)).state.consumer_count).toBe(1);
    await watch.stop();
    expect((await manager.streams.info(`KV_${name}`)).state.consumer_count).toBe(0);
  });
});
