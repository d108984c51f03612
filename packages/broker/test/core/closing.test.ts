/**
 * A binding that is being undone: what was delivered by it comes again when it is handed back, and nothing that was
 * published after unbind-ok enters, however late a replica hears of any of it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Broker } from "../../src/core/broker.ts";
import type { Session } from "../../src/core/verbs.ts";
import { bound, Gate, isRoutable, LATE, ON_K, setStage, soon, textsOf } from "./closing-stage.ts";
import { late } from "./late.ts";
import { drain, publish, queueSpec, Taker } from "./rig.ts";

const stage = setStage();

test("what a lone process delivers while its write is on its way comes again when it is handed back", async () => {
  const gate = new Gate();
  const [broker, session] = await stage.replica({ bucket: gate.bucket });
  await bound(broker, session);
  const taker = await Taker.on(broker, session, "q");
  gate.isShut = true;
  const unbound = broker.unbind(session, ON_K);
  await soon(() => gate.waiting).toBe(1);
  await publish(broker, "x", "k", "one");
  await soon(() => textsOf(taker)).toEqual(["one"]);
  gate.open();
  expect(await unbound).toBeUndefined();
  taker.deliveries[0]?.settle("requeue");
  await soon(() => textsOf(taker)).toEqual(["one", "one"]);
  expect(taker.deliveries[1]?.redelivered).toBe(true);
  taker.deliveries[1]?.settle("complete");
  await publish(broker, "x", "k", "after");
  expect(await drain(broker, session, "q")).toEqual([]);
});

describe("with a leader, and a replica that hears of everything late", () => {
  let broker: Broker;
  let session: Session;
  let other: Broker;
  let theirs: Session;
  /** What the leader's own client got, and the other's. */
  let taker: Taker;

  beforeAll(async () => {
    await stage.close();
    [broker, session] = await stage.replica();
    [other, theirs] = await stage.replica({ bucket: (bucket) => late(bucket, LATE) });
  });
  beforeEach(async () => {
    await bound(broker, session);
    await other.fence();
  });

  /** Begins to unbind, and waits until the leader knows and the other does not. */
  async function begin() {
    const began = performance.now();
    const unbound = broker.unbind(session, ON_K);
    await sleep(LATE / 4);
    return { began, unbound };
  }

  test.each(["a consumer", "basic.get"])(
    "what the late one delivers comes again when it is handed back, to %s",
    async (how) => {
      const taker = await Taker.on(other, theirs, "q");
      const again = how === "a consumer" ? await Taker.on(broker, session, "q", 2) : undefined;
      const { unbound } = await begin();
      for (const text of ["one", "two"]) await publish(other, "x", "k", text);
      await soon(() => textsOf(taker).length).toBeGreaterThan(0);
      expect(await unbound).toBeUndefined();
      await publish(broker, "x", "k", "after");
      await taker.subscription?.cancel();
      for (const delivery of taker.deliveries) delivery.settle("requeue");
      if (again === undefined) {
        expect(textsOf(taker)).toEqual(["one", "two"]);
        await other.checkQueue(theirs, "q");
        expect(await drain(broker, session, "q")).toEqual(["one", "two"]);
        return;
      }
      await soon(() => textsOf(again).toSorted()).toEqual(["one", "two"]);
      for (const delivery of again.deliveries) delivery.settle("complete");
      expect(await broker.checkQueue(session, "q")).toMatchObject({ messages: 0 });
    },
  );

  test("what the late one delivers comes again also where the exchange was deleted", async () => {
    const taker = await Taker.on(other, theirs, "q");
    const deleted = broker.deleteExchange("x", { ifUnused: false });
    await sleep(LATE / 4);
    for (const key of ["k", "l"]) await publish(other, "x", key, key);
    await soon(() => textsOf(taker)).toEqual(["k", "l"]);
    expect(await deleted).toBeUndefined();
    for (const delivery of taker.deliveries) delivery.settle("requeue");
    await soon(() => textsOf(taker)).toEqual(["k", "l", "k", "l"]);
    for (const delivery of taker.deliveries.slice(2)) delivery.settle("complete");
  });

  test("the late one's count, after unbind-ok, has nothing of what was published since", async () => {
    await publish(broker, "x", "k", "old");
    expect(await broker.unbind(session, ON_K)).toBeUndefined();
    await publish(broker, "x", "k", "after");
    expect(await other.checkQueue(theirs, "q")).toMatchObject({ messages: 1 });
    expect(await drain(other, theirs, "q")).toEqual(["old"]);
  });

  describe("meanwhile", () => {
    beforeEach(async () => {
      await publish(broker, "x", "k", "old");
      taker = await Taker.on(broker, session, "q");
      await soon(() => textsOf(taker)).toEqual(["old"]);
      taker.deliveries[0]?.settle("complete");
      taker.deliveries.splice(0);
    });

    test("what comes by the binding waits for its end, and what is behind waits with it; nothing else does", async () => {
      await broker.declareQueue(session, queueSpec("r"));
      const beside = await Taker.on(broker, session, "r");
      const { began, unbound } = await begin();
      await publish(broker, "x", "l", "before");
      await soon(() => textsOf(taker)).toEqual(["before"]);
      await publish(broker, "x", "k", "undecided");
      await publish(broker, "x", "l", "behind");
      await publish(broker, "", "r", "beside");
      await soon(() => textsOf(beside)).toEqual(["beside"]);
      expect(textsOf(taker)).toEqual(["before"]);
      expect(performance.now() - began).toBeLessThan(LATE);
      expect(await unbound).toBeUndefined();
      const ended = performance.now();
      expect(ended - began).toBeLessThan(2 * LATE);
      await soon(() => textsOf(taker)).toEqual(["before", "undecided", "behind"]);
      expect(performance.now() - ended).toBeLessThan(LATE / 2);
      expect(taker.deliveries.some(({ redelivered }) => redelivered)).toBe(false);
      for (const delivery of [...taker.deliveries, ...beside.deliveries]) delivery.settle("complete");
    });

    test("whoever publishes is told that nothing is bound", async () => {
      expect(isRoutable(broker)).toBe(true);
      const { unbound } = await begin();
      expect([isRoutable(broker), isRoutable(other)]).toEqual([false, true]);
      await unbound;
      expect([isRoutable(broker), isRoutable(other)]).toEqual([false, false]);
    });

    test("basic.get waits for what is undecided, and keeps the order", async () => {
      await taker.subscription?.cancel();
      const { unbound } = await begin();
      await publish(broker, "x", "k", "undecided");
      await publish(broker, "x", "l", "behind");
      expect(await drain(broker, session, "q")).toEqual(["undecided", "behind"]);
      expect(await unbound).toBeUndefined();
    });

    test("a purge waits for nothing, and counts what it took", async () => {
      const { began, unbound } = await begin();
      await publish(broker, "x", "k", "undecided");
      await publish(broker, "x", "l", "behind");
      await sleep(20);
      // What waits counts as ready, wherever it is.
      expect(await broker.checkQueue(session, "q")).toMatchObject({ messages: 2 });
      expect(await broker.purgeQueue(session, "q")).toEqual({ messages: 2 });
      expect(performance.now() - began).toBeLessThan(LATE);
      expect(await unbound).toBeUndefined();
      expect(textsOf(taker)).toEqual([]);
    });

    test("a consumer that goes hands back what waited for it: another has it, first and in order", async () => {
      const { began, unbound } = await begin();
      for (const key of ["k", "l", "k"]) await publish(broker, "x", key, `new ${key}`);
      await sleep(20);
      const gone = taker.subscription?.cancel();
      await soon(async () => (await broker.checkQueue(session, "q")) as object).toMatchObject({ messages: 3 });
      expect(performance.now() - began).toBeLessThan(LATE);
      expect(await unbound).toBeUndefined();
      await gone;
      const next = await Taker.on(broker, session, "q");
      await soon(() => textsOf(next)).toEqual(["new k", "new l", "new k"]);
      expect(next.deliveries.some(({ redelivered }) => redelivered)).toBe(false);
      for (const delivery of next.deliveries) delivery.settle("complete");
    });

    test("the bus may go: what waits is handed back, and comes when it is known", async () => {
      const { unbound } = await begin();
      await publish(broker, "x", "k", "undecided");
      await publish(broker, "x", "l", "behind");
      await sleep(20);
      expect(textsOf(taker)).toEqual([]);
      await stage.server.restart(100);
      expect(await unbound).toBeUndefined();
      await soon(() => textsOf(taker), 20_000).toContain("behind");
      // Where "old" comes again, the bus had lost that it was acknowledged.
      expect(textsOf(taker).filter((text) => text !== "old")).toEqual(["undecided", "behind"]);
      for (const delivery of taker.deliveries) delivery.settle("complete");
      await stage.expectWhole();
    }, 40_000);
  });
});
