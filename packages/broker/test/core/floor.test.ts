/** The end of an empty queue beside a large backlog: JetStream is left nothing to look through. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Bus, PublishOutcome } from "../../src/core/bus.ts";
import { isRefusal } from "../../src/refusals.ts";
import { drain, openRig, publish, queueSpec, type Rig } from "./rig.ts";

const QUEUES = 60;
const BACKLOG = 2_000;
let server: NatsServer;
let rig: Rig;
/** How far below the log's end each deleted cursor's floor was, by queue. */
const behind = new Map<string, number>();
/** Where messages of our own were stored. */
const marked: string[] = [];
let outcome: PublishOutcome | undefined;

beforeAll(async () => {
  server = await NatsServer.start();
  rig = await openRig(server.url, { bus: watched });
  const session = rig.broker.openSession();
  const names = Array.from({ length: QUEUES }, (_, n) => `q${n}`);
  for (const name of ["backlog", ...names]) await rig.broker.declareQueue(session, queueSpec(name));
});
afterAll(async () => {
  await rig.close();
  await server.stop();
});

function watched(bus: Bus): Bus {
  return new Proxy(bus, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (name === "deleteCursor")
        return async (...given: Parameters<Bus["deleteCursor"]>) => {
          const state = await target.cursorState(given[0]);
          const { lastSequence } = await target.logState();
          if (state !== undefined) behind.set(given[0], lastSequence - state.ackFloor);
          return target.deleteCursor(...given);
        };
      if (name === "store")
        return async (...given: Parameters<Bus["store"]>) => {
          marked.push(given[0]);
          return outcome ?? target.store(...given);
        };
      return member.bind(target) as unknown;
    },
  });
}

async function remove(name: string): Promise<void> {
  const session = rig.broker.openSession();
  const removed = await rig.broker.deleteQueue(session, name, { ifUnused: false, ifEmpty: false });
  expect(isRefusal(removed)).toBe(false);
}

test("where there is little to look through it goes as it is", async () => {
  for (let n = 0; n < 20; n++) await publish(rig.broker, "", "backlog", `${n}`);
  await remove("q0");
  expect(marked).toEqual([]);
  expect(behind.get("q0")).toBeGreaterThanOrEqual(20);
});

test("where there is much its floor is brought to the end first, and nothing of that stays", async () => {
  const rest = Array.from({ length: BACKLOG - 20 }, (_, n) => publish(rig.broker, "", "backlog", `${n + 20}`));
  await Promise.all(rest);
  // What the leader knows of the log may be a second old.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await remove("q1");
  expect(marked).toEqual(["amqp._.q1"]);
  expect(behind.get("q1")).toBeLessThan(10);
  expect(await rig.bus.count(["amqp._.q1"], 0)).toBe(0);
  const session = rig.broker.openSession();
  expect(await rig.broker.declareQueue(session, queueSpec("q1"))).toMatchObject({ messages: 0 });
});

test("what holds messages goes as it is: its floor cannot be brought anywhere", async () => {
  await publish(rig.broker, "", "q2", "mine");
  await remove("q2");
  expect(marked).not.toContain("amqp._.q2");
});

test("a bus that refuses it does not stop a deletion; one that does not permit the message is asked once", async () => {
  for (const [name, how] of [
    ["q3", "refused"],
    ["q4", "denied"],
    ["q5", "denied"],
  ] as const) {
    outcome = how;
    await remove(name);
    expect(await rig.bus.cursorState(name)).toBeUndefined();
  }
  expect(marked.slice(1)).toEqual(["amqp._.q3", "amqp._.q4"]);
  outcome = undefined;
  expect(await drain(rig.broker, rig.broker.openSession(), "backlog")).toHaveLength(BACKLOG);
});
