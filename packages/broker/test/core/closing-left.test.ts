/**
 * The undoing of a binding among replicas that die, fail, or are of another version: it comes to its end, and nothing that
 * was published after unbind-ok enters.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Bucket } from "@amqp/topology";
import { beforeEach, describe, expect, test } from "vitest";
import type { Bus } from "../../src/core/bus.ts";
import { before } from "./before.ts";
import { bound, Gate, isRoutable, LATE, ON_K, old, setStage, soon, textsOf } from "./closing-stage.ts";
import { late } from "./late.ts";
import { Mortality } from "./mortal.ts";
import { drain, exchangeSpec, openRig, publish, Taker } from "./rig.ts";
import { eventually } from "./whole.ts";

const stage = setStage();

describe("nothing that was published after unbind-ok enters", () => {
  beforeEach(stage.close);

  test.each([
    ["where a replica knows that it is being undone, and no more yet", (bucket: Bucket) => late(bucket, 60)],
    ["where a replica is of a version that knows nothing of `closing`", (bucket: Bucket) => late(old(bucket), 60)],
  ])(
    "%s",
    async (_, bucket) => {
      const [broker, session] = await stage.replica();
      await bound(broker, session);
      const [other, theirs] = await stage.replica({ bucket });
      const taker = await Taker.on(other, theirs, "q", 1_000);
      const expected: string[] = [];
      for (let round = 0; round < 10; round++) {
        await broker.bind(session, [ON_K]);
        await publish(broker, "x", "k", `in ${round}`);
        expect(await broker.unbind(session, ON_K)).toBeUndefined();
        await publish(broker, "x", "k", `out ${round}`);
        expected.push(`in ${round}`);
        if (round % 3 === 0) expect(await other.get(theirs, "q", { acknowledge: true })).toMatchObject({ messages: 0 });
      }
      await publish(broker, "x", "l", "end");
      await soon(() => textsOf(taker).includes("end")).toBe(true);
      expect(textsOf(taker)).toEqual([...expected, "end"]);
      expect(await other.checkQueue(theirs, "q")).toMatchObject({ messages: 0 });
      expect(taker.deliveries.some(({ redelivered }) => redelivered)).toBe(false);
      for (const delivery of taker.deliveries) delivery.settle("complete");
    },
    20_000,
  );
});

describe("an undoing that was left in the middle", () => {
  beforeEach(stage.close);

  test("by a bus that failed is finished by who leads, and its auto-delete exchange goes", async () => {
    let ends = 0;
    let fails = false;
    const failing = (bus: Bus): Bus =>
      before(bus, "lastSequence", async () => {
        // The first is the least end, the second the end.
        if (fails && ++ends === 2) throw new Error("the bus refuses");
      });
    const [broker, session] = await stage.replica({ bus: failing });
    await bound(broker, session);
    await broker.declareExchange(exchangeSpec("y", "fanout", { autoDelete: true }));
    await broker.bind(session, [{ ...ON_K, exchange: "y", key: "" }]);
    const taker = await Taker.on(broker, session, "q");
    fails = true;
    await expect(broker.unbind(session, { ...ON_K, exchange: "y", key: "" })).rejects.toThrow("the bus refuses");
    await eventually(expect, async () => (await broker.checkExchange("y"))?.code, 404);
    await publish(broker, "x", "k", "one");
    await soon(() => textsOf(taker)).toEqual(["one"]);
    taker.deliveries[0]?.settle("complete");
    await stage.expectWhole();
  });

  test("is taken up by whoever unbinds it again, and by whoever binds it again", async () => {
    let isBroken = false;
    let isBlocked = false;
    const blocked = (bus: Bus): Bus =>
      before(bus, "lastSequence", async () => {
        if (isBroken) throw new Error("the bus refuses");
        isBroken = isBlocked;
      });
    const [broker, session] = await stage.replica({ bus: blocked });
    await bound(broker, session);
    for (const verb of ["bind", "unbind"] as const) {
      isBlocked = true;
      await expect(broker.unbind(session, ON_K)).rejects.toThrow("the bus refuses");
      isBlocked = false;
      isBroken = false;
      await broker[verb](session, verb === "bind" ? ([ON_K] as never) : (ON_K as never));
      await publish(broker, "x", "k", `after ${verb}`);
    }
    expect(await drain(broker, session, "q")).toEqual(["after bind"]);
    await stage.expectWhole();
  });

  test("by a leader that died is finished by the next one, though nobody asks again", async () => {
    const mortality = new Mortality();
    const first = await openRig(stage.server.url, mortality);
    const session = first.broker.openSession();
    await bound(first.broker, session);
    await first.broker.declareExchange(exchangeSpec("y", "fanout", { autoDelete: true }));
    await first.broker.bind(session, [{ ...ON_K, exchange: "y", key: "" }]);
    const [heir, own] = await stage.replica();
    const taker = await Taker.on(heir, own, "q");
    mortality.arm(1);
    void first.broker.unbind(session, { ...ON_K, exchange: "y", key: "" }).catch(() => undefined);
    await mortality.dead;
    await publish(heir, "y", "", "undecided");
    await publish(heir, "x", "l", "behind");
    await first.drop();
    await sleep(LATE);
    expect(textsOf(taker)).toEqual([]);
    await soon(() => textsOf(taker), 10_000).toEqual(["undecided", "behind"]);
    await eventually(expect, async () => (await heir.checkExchange("y"))?.code, 404);
    await stage.expectWhole();
    for (const delivery of taker.deliveries) delivery.settle("complete");
  }, 20_000);

  test("by a leader whose write the bus had kept back is finished by the next one", async () => {
    const gate = new Gate();
    let isMute = false;
    const first = await openRig(stage.server.url, {
      // Its leases lapse, and it asks nobody to do it again.
      bucket: (bucket) =>
        before(gate.bucket(bucket), "refresh", async () => {
          if (isMute) throw new Error("no answer");
        }),
      bus: (bus) => before(bus, "lastSequence", async () => (isMute ? new Promise<void>(() => undefined) : undefined)),
    });
    const session = first.broker.openSession();
    await bound(first.broker, session);
    const [heir, own] = await stage.replica();
    const taker = await Taker.on(heir, own, "q");
    gate.isShut = true;
    void first.broker.unbind(session, ON_K).catch(() => undefined);
    await soon(() => gate.waiting).toBe(1);
    isMute = true;
    await soon(() => first.broker.isCurrent, 10_000).toBe(false);
    await heir.declareExchange(exchangeSpec("y", "topic"));
    await publish(heir, "x", "k", "one");
    await soon(() => textsOf(taker)).toEqual(["one"]);
    gate.open();
    await soon(() => isRoutable(heir)).toBe(false);
    await stage.expectWhole();
    taker.deliveries[0]?.settle("requeue");
    await publish(heir, "x", "k", "after");
    await publish(heir, "x", "l", "end");
    await soon(() => textsOf(taker)).toEqual(["one", "one", "end"]);
    for (const delivery of taker.deliveries.slice(1)) delivery.settle("complete");
    await first.drop();
  }, 40_000);
});
