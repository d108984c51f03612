/** What is done behind a client's back is done in the end, also where the bus refuses it at first. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Bus, CursorSpec, CursorState } from "../../src/core/bus.ts";
import { stored } from "../nats/stored.ts";
import { drain, exchangeSpec, openRig, publish, queueSpec } from "./rig.ts";

let server: NatsServer;
beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

test("a cursor whose narrowing failed is narrowed later", async () => {
  let failures = 0;
  const refusing = (bus: Bus): Bus =>
    new Proxy(bus, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        if (name !== "updateCursor") return member.bind(target);
        return (spec: CursorSpec): unknown => {
          if (failures === 0) return member.call(target, spec);
          failures--;
          return Promise.reject(new Error("the bus refuses"));
        };
      },
    });
  const { broker, bus, close } = await openRig(server.url, { bus: refusing });
  const session = broker.openSession();
  const binding = { queue: "q", exchange: "x", key: "k", arguments: "" };
  await broker.declareExchange(exchangeSpec("x", "topic"));
  await broker.declareQueue(session, queueSpec("q"));
  await broker.bind(session, [binding]);
  failures = 2;
  expect(await broker.unbind(session, binding)).toBeUndefined();
  await expect.poll(() => failures, { timeout: 5000 }).toBe(0);
  const filters = async (): Promise<readonly string[] | undefined> => (await bus.cursorState("q"))?.filters;
  await expect.poll(filters, { timeout: 5000 }).toEqual(["amqp._.q"]);
  await publish(broker, "x", "k", "nobody's");
  expect(await drain(broker, session, "q")).toEqual([]);
  await expect.poll(() => stored(bus)).toBe(0);
  await broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false });
  await close();
});

// On a cluster a cursor's leader may have heard less of the log than was confirmed; in a tenant's namespace as anywhere.
test.each(["amqp", "amqp.@acme"])("what the bus does not count yet is not narrowed away below %s", async (root) => {
  let isBehind = false;
  const lagging = (bus: Bus): Bus =>
    new Proxy(bus, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        if (name !== "cursorState") return member.bind(target);
        return async (queue: string): Promise<CursorState | undefined> => {
          const state = await target.cursorState(queue);
          return state !== undefined && isBehind ? { ...state, pending: 0 } : state;
        };
      },
    });
  const { broker, close } = await openRig(server.url, { root, bus: lagging });
  const session = broker.openSession();
  const binding = { queue: "late", exchange: "late", key: "k", arguments: "" };
  await broker.declareExchange(exchangeSpec("late", "topic"));
  await broker.declareQueue(session, queueSpec("late"));
  await broker.bind(session, [binding]);
  await publish(broker, "late", "k", "confirmed");
  isBehind = true;
  expect(await broker.unbind(session, binding)).toBeUndefined();
  // Chores look at once, and again after a quarter of a second.
  await sleep(600);
  isBehind = false;
  expect(await drain(broker, session, "late")).toEqual(["confirmed"]);
  await broker.deleteQueue(session, "late", { ifUnused: false, ifEmpty: false });
  await broker.deleteExchange("late", { ifUnused: false });
  await close();
});
