/** What befalls one replica in the very moments in which another one works on what is its own. */
import { LEADER_KEY } from "@amqp/topology";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import { before } from "./before.ts";
import { openRig, queueSpec, type Rig } from "./rig.ts";

let server: NatsServer;

beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

test("a replica that dies while another one takes over, and has passed its queues, is seen to afterwards", async () => {
  const first = await openRig(server.url);
  let looks = Number.NEGATIVE_INFINITY;
  let isAtIt: () => void = () => undefined;
  let goOn: () => void = () => undefined;
  const atIt = new Promise<void>((resolve) => {
    isAtIt = resolve;
  });
  const buried = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const heir: Rig = await openRig(server.url, {
    // Taking over looks at all cursors to reconcile them, and a second time to sweep them.
    bus: (bus) =>
      before(bus, "cursors", async () => {
        if (++looks !== 2) return;
        isAtIt();
        await buried;
      }),
  });
  const owner: Rig = await openRig(server.url, {
    // It never leads.
    bucket: (bucket) =>
      before(bucket, "refresh", async ([key]) => {
        if (key === LEADER_KEY) await new Promise(() => undefined);
      }),
  });
  const declared = await owner.broker.declareQueue(owner.broker.openSession(), queueSpec("e1", { exclusive: true }));
  expect(declared).toMatchObject({ name: "e1" });
  looks = 0;
  await first.drop();
  await atIt;
  await owner.drop();
  // Its lease is three seconds.
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  goOn();
  const session = heir.broker.openSession();
  const found = async (): Promise<unknown> => heir.broker.checkQueue(session, "e1");
  await expect.poll(found, { timeout: 10_000, interval: 100 }).toMatchObject({ code: 404 });
  await heir.close();
}, 40_000);

test("an exclusive queue asked for before its owner's lease lapsed, and made afterwards, goes with its owner", async () => {
  let make: () => void = () => undefined;
  const mayMake = new Promise<void>((resolve) => {
    make = resolve;
  });
  let isAsked = false;
  const leader = await openRig(server.url, {
    bucket: (bucket) =>
      before(bucket, "create", async ([key]) => {
        if (key !== "q.e1") return;
        isAsked = true;
        await mayMake;
      }),
  });
  let isCut = false;
  const owner = await openRig(server.url, {
    bucket: (bucket) =>
      before(bucket, "refresh", async () => {
        if (isCut) throw new Error("no answer");
      }),
  });
  const declared = owner.broker.declareQueue(owner.broker.openSession(), queueSpec("e1", { exclusive: true }));
  await expect.poll(() => isAsked).toBe(true);
  isCut = true;
  await expect.poll(() => owner.broker.isCurrent, { timeout: 10_000 }).toBe(false);
  isCut = false;
  await expect.poll(() => owner.broker.isCurrent, { timeout: 10_000 }).toBe(true);
  // It has told its new id.
  await new Promise((resolve) => setTimeout(resolve, 500));
  make();
  expect(await declared).toMatchObject({ name: "e1" });
  const session = leader.broker.openSession();
  const found = async (): Promise<unknown> => leader.broker.checkQueue(session, "e1");
  expect(await found()).toMatchObject({ code: 405 });
  await owner.drop();
  await expect.poll(found, { timeout: 15_000, interval: 100 }).toMatchObject({ code: 404 });
  await leader.close();
}, 40_000);
