/**
 * Every change of a queue's cursor asks for its permission when it leaves: a leader that stood still, or waited for its
 * connection, while another one took over changes nothing of what that one did.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Bus } from "../../src/core/bus.ts";
import { NotLeading } from "../../src/core/leadership.ts";
import { exchangeSpec, openRig, publish, queueSpec } from "./rig.ts";

let server: NatsServer;

beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

test("a leader asks to lead in each change of a cursor", async () => {
  const asked = new Map<string, unknown[]>();
  const rig = await openRig(server.url, { bus: (bus) => watched(bus, asked) });
  const { broker } = rig;
  const session = broker.openSession();
  const at = { queue: "q", exchange: "x", key: "k", arguments: "" };
  await broker.declareExchange(exchangeSpec("x", "topic"));
  await broker.declareQueue(session, queueSpec("q"));
  await broker.bind(session, [at]);
  await publish(broker, "x", "k", "one");
  await broker.unbind(session, at);
  await broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false });
  expect([...asked.keys()].sort()).toEqual(["createCursor", "deleteCursor", "updateCursor"]);
  const permits = [...asked.values()].flat();
  for (const permit of permits) expect(permit).not.toThrow();
  await rig.close();
  for (const permit of permits) expect(permit).toThrow(NotLeading);
});

test("nothing is written of the topology while the bus is away: what the client holds would leave when it is back", async () => {
  const bus = await NatsServer.start();
  const rig = await openRig(bus.url);
  const session = rig.broker.openSession();
  await rig.broker.declareQueue(session, queueSpec("before"));
  await bus.kill();
  await expect.poll(() => rig.bus.present).toBe(false);
  const declaring = rig.broker.declareQueue(session, queueSpec("late")).catch((error: unknown) => error);
  await new Promise((resolve) => setTimeout(resolve, 500));
  // As a leader that ends before the bus is back.
  await rig.drop();
  await declaring;
  await bus.restart();
  const next = await openRig(bus.url);
  expect(await next.broker.checkQueue(next.broker.openSession(), "late")).toMatchObject({ name: "no-queue" });
  await next.close();
  await bus.stop();
}, 60_000);

/** Notes the permit of each change that passes. */
function watched(bus: Bus, asked: Map<string, unknown[]>): Bus {
  return new Proxy(bus, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (!/^(create|update|delete)Cursor$/.test(String(name))) return member.bind(target);
      return (first: unknown, second: unknown): unknown => {
        const permit = name === "updateCursor" ? (second as { permit?: unknown })?.permit : second;
        asked.set(String(name), [...(asked.get(String(name)) ?? []), permit]);
        return member.call(target, first, second) as unknown;
      };
    },
  });
}
