/** A lapsed presence is taken anew under another id, once, however often that fails; no lease of it is left behind. */
import { type Bucket, openBucket, Topology } from "@amqp/topology";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import { Presence, type PresenceListener } from "../../src/core/presence.ts";

const quiet = (): void => undefined;
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
let server: NatsServer;
let connection: NatsConnection;
let topology: Topology;
let presence: Presence;
/** While it is closed nobody's lease is refreshed or taken. */
let gate: { open: boolean };
let told: string[];
let takeOver: () => Promise<void>;

beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

beforeEach(async () => {
  gate = { open: true };
  told = [];
  takeOver = async () => undefined;
  connection = await connect({ servers: server.url });
  const bucket = guarded(await openBucket(connection, { name: "amqp" }));
  topology = await Topology.open(bucket, { root: "amqp", lost: quiet });
  presence = new Presence(bucket, topology, log);
  const listener: PresenceListener = {
    lapsed: () => told.push("lapsed"),
    naming: quiet,
    renamed: async (former) => {
      told.push(`renamed ${former.length}`);
      await takeOver();
    },
    regained: () => told.push("regained"),
  };
  await presence.take(listener);
});
afterEach(async () => {
  await presence.release();
  await expect.poll(() => topology.replicas().size, { timeout: 5000 }).toBe(0);
  await topology.close();
  await connection.close();
});

function guarded(bucket: Bucket): Bucket {
  return new Proxy(bucket, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (name !== "refresh" || gate.open) return member.bind(target);
      return () => Promise.reject(new Error("the gate is closed"));
    },
  });
}

/** Lets the lease lapse, and its key expire. */
async function lapse(): Promise<void> {
  gate.open = false;
  await expect.poll(() => presence.held(), { timeout: 5000 }).toBe(false);
  await expect.poll(() => topology.replicas().size, { timeout: 5000 }).toBe(0);
}

const alive = (): string[] => [...topology.replicas().keys()];

test("it is held again under another id when the bus takes it again", async () => {
  const before = presence.id;
  await lapse();
  expect(told).toEqual(["lapsed"]);
  gate.open = true;
  await expect.poll(() => told, { timeout: 5000 }).toEqual(["lapsed", "renamed 1", "regained"]);
  expect(presence.held()).toBe(true);
  expect(presence.id).not.toBe(before);
  expect(alive()).toEqual([presence.id]);
}, 30_000);

test("a take-over that fails is tried again under the same id, until it is done", async () => {
  await lapse();
  let tries = 0;
  takeOver = async () => {
    if (++tries < 4) throw new Error("nobody leads");
  };
  gate.open = true;
  await expect.poll(() => told.at(-1), { timeout: 10_000 }).toBe("regained");
  expect(told).toEqual(["lapsed", "renamed 1", "renamed 1", "renamed 1", "renamed 1", "regained"]);
  expect(alive()).toEqual([presence.id]);
}, 30_000);

test("one that lapses again during the take-over is taken over from both ids, and leaves no lease", async () => {
  await lapse();
  let tries = 0;
  takeOver = async () => {
    if (++tries > 1) return;
    await lapse();
    setTimeout(() => {
      gate.open = true;
    }, 300);
  };
  gate.open = true;
  await expect.poll(() => told.at(-1), { timeout: 15_000 }).toBe("regained");
  expect(told).toEqual(["lapsed", "renamed 1", "renamed 2", "regained"]);
  expect(presence.held()).toBe(true);
  expect(alive()).toEqual([presence.id]);
}, 30_000);

test("released while it is lapsed, it is not taken again", async () => {
  await lapse();
  await presence.release();
  gate.open = true;
  await new Promise((resolve) => setTimeout(resolve, 2500));
  expect(alive()).toEqual([]);
  expect(presence.held()).toBe(false);
}, 30_000);
