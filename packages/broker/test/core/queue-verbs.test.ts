/** The verbs of a queue on a real bus: get, purge, emptying before deletion. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Bus, CursorState } from "../../src/core/bus.ts";
import { emptyCursor } from "../../src/core/drain.ts";
import type { Delivery } from "../../src/core/message.ts";
import { acknowledged, Client, numberOf, numbers, requeue } from "./queue-client.ts";
import { until } from "./queue-site.ts";
import { setStage } from "./queue-stage.ts";

const stage = setStage("verbs");

describe("get", () => {
  it("takes what is there in order, and then nothing", async () => {
    await stage.publish(3);
    const got = [await stage.take(), await stage.take(), await stage.take()];
    expect(got.map(numberOf)).toEqual(numbers(3));
    expect(await stage.cursor.get(true)).toBeUndefined();
    expect(stage.cursor.held).toBe(3);
    for (const delivery of got) delivery.settle("complete");
    await stage.expectEmpty();
  });

  it("sees what was put back just before: 300 of 300", async () => {
    await stage.publish(1);
    let delivery = await stage.take();
    expect(delivery.redelivered).toBe(false);
    for (let round = 0; round < 300; round++) {
      delivery.settle("requeue");
      delivery = await stage.take();
      expect(delivery.redelivered).toBe(true);
    }
  });

  it("serves callers that come together in their order, and the others with nothing", async () => {
    await stage.publish(5);
    const got = await Promise.all(Array.from({ length: 8 }, () => stage.cursor.get(false)));
    expect(got.map((delivery) => delivery && numberOf(delivery))).toEqual([
      ...numbers(5),
      ...Array.from({ length: 3 }, () => undefined),
    ]);
    expect(stage.cursor.held).toBe(0);
    await stage.expectEmpty();
  });

  it("skips what has expired and what no binding holds", async () => {
    await stage.site.widen(stage.name, "d", `${stage.name}-key`);
    await stage.site.publish(`amqp.d.${stage.name}-key`, 5);
    await stage.publish(5, { first: 5, lifetime: 0 });
    await stage.publish(1, { first: 10 });
    expect(numberOf(await stage.take())).toBe(10);
    expect(await stage.cursor.get(true)).toBeUndefined();
  });

  it("finds the queue empty while a consumer waits for messages", async () => {
    const client = new Client(10);
    stage.subscribe(client);
    await until(() => stage.cursor.state === "pulling");
    const began = Date.now();
    for (let round = 0; round < 5; round++) expect(await stage.cursor.get(true)).toBeUndefined();
    expect(Date.now() - began).toBeLessThan(1_000);
    await stage.publish(1);
    await until(() => client.got.length === 1);
  });

  it("finds what was stored just before: 500 of 500", async () => {
    for (let round = 0; round < 500; round++) {
      await stage.publish(1, { first: round });
      expect(await stage.cursor.ready()).toBe(1);
      expect(numberOf((await stage.cursor.get(false)) as Delivery)).toBe(round);
    }
  });

  it("is done at once without acknowledgement", async () => {
    await stage.publish(1);
    const delivery = await stage.cursor.get(false);
    delivery?.settle("requeue");
    expect(stage.cursor.held).toBe(0);
    await stage.expectEmpty();
  });
});

describe("purge", () => {
  it("removes what is ready, put back or never out, and spares what is held", async () => {
    await stage.publish(3_000);
    const held = [await stage.take(), await stage.take(), await stage.take(), await stage.take()];
    held[0]?.settle("requeue");
    held[2]?.settle("requeue");
    expect(await stage.cursor.purge()).toBe(2_998);
    expect(stage.cursor.held).toBe(2);
    expect(await stage.cursor.ready()).toBe(0);
    held[1]?.settle("requeue");
    expect(numberOf(await stage.take())).toBe(1);
    expect(await stage.cursor.purge()).toBe(0);
  });

  it("counts neither what has expired nor what no binding holds, and removes both", async () => {
    await stage.site.widen(stage.name, "d", `${stage.name}-key`);
    await stage.site.publish(`amqp.d.${stage.name}-key`, 5);
    await stage.publish(4, { lifetime: 1 });
    await stage.publish(3);
    await sleep(5);
    expect(await stage.cursor.purge()).toBe(3);
    await stage.expectEmpty();
  });

  it("goes on with the consumers after it, which keep what they hold", async () => {
    const client = new Client(10);
    stage.subscribe(client);
    await stage.publish(500);
    await until(() => client.got.length === 10);
    expect(await stage.cursor.purge()).toBe(490);
    await stage.publish(20, { first: 500 });
    client.ackAll();
    await until(() => client.got.length === 20);
    client.ackAll();
    await until(() => client.got.length === 30);
    expect(client.numbers).toEqual([...numbers(10), ...numbers(20, 500)]);
    client.ackAll();
    await stage.expectEmpty();
  });

  it("leaves what comes after its start, in order and not flagged", async () => {
    await stage.publish(2_000);
    const purged = stage.cursor.purge();
    await stage.publish(1_000, { first: 2_000 });
    const gone = await purged;
    const client = new Client(5_000);
    stage.subscribe(client);
    await until(() => client.got.length === 3_000 - gone);
    expect(gone).toBeGreaterThanOrEqual(2_000);
    expect(client.numbers).toEqual(numbers(3_000 - gone, gone));
    expect(client.got.filter(({ redelivered }) => redelivered)).toEqual([]);
  });
});

describe("a queue that ends", () => {
  /** The real bus; `known` are the queues that were pulled from and not forgotten since. */
  function remembering(known: Set<string>): Bus {
    return new Proxy<Bus>(stage.site.bus, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== "function") return value;
        return (...parameters: unknown[]) => {
          if (property === "openPull") known.add(parameters[0] as string);
          if (property === "forget") known.delete(parameters[0] as string);
          return value.apply(target, parameters);
        };
      },
    });
  }

  it.each(["gone", "close"] as const)(
    "leaves nothing behind in the bus of a replica that only read it: %s",
    async (end) => {
      const known = new Set<string>();
      const own = stage.site.cursorOn(stage.name, remembering(known));
      await stage.publish(3);
      const client = new Client(1);
      own.subscribe(client, acknowledged(client));
      await until(() => client.got.length === 1);
      await own.get(false);
      expect([...known]).toEqual([stage.name]);
      await own[end]();
      expect([...known]).toEqual([]);
    },
  );
});

describe("emptyCursor", () => {
  const permitted = (): void => undefined;

  async function stateNow(): Promise<CursorState> {
    const state = await stage.site.bus.cursorState(stage.name);
    if (state === undefined) throw new Error(`no cursor ${stage.name}`);
    return state;
  }

  it("does nothing near the log's end or to an empty cursor", async () => {
    expect(await emptyCursor(stage.site.bus, await stateNow(), permitted)).toBeUndefined();
    await stage.publish(10);
    expect(await emptyCursor(stage.site.bus, await stateNow(), permitted)).toBeUndefined();
    expect(await stage.cursor.ready()).toBe(10);
  });

  it("empties a long backlog, held and put back ones too, and begins again after a crash", async () => {
    const client = new Client(40);
    stage.subscribe(client);
    for (let round = 0; round < 14; round++) await stage.publish(4_000);
    await until(() => client.got.length === 40);
    requeue(client.got.slice(10, 20));
    stage.cursor.gone();
    const state = await stateNow();
    const first = emptyCursor(stage.site.bus, state, permitted);
    const again = emptyCursor(stage.site.bus, state, permitted);
    const drained = Math.max((await first) ?? 0, (await again) ?? 0);
    expect(drained).toBeGreaterThan(0);
    await stage.expectEmpty();
    await stage.publish(7);
    expect(await stage.site.bus.deleteCursor(stage.name)).toBe(true);
    await stage.site.bus.collect([stage.subject], drained);
    expect(await stage.site.bus.count([stage.subject], 0)).toBe(0);
  }, 60_000);

  it("takes nothing more from the moment on in which it may not any more", async () => {
    for (let round = 0; round < 13; round++) await stage.publish(4_000);
    stage.cursor.gone();
    let left = 5;
    const emptying = emptyCursor(stage.site.bus, await stateNow(), () => {
      if (left-- === 0) throw new Error("not any more");
    });
    await expect(emptying).rejects.toThrow("not any more");
    await stage.site.bus.settled(stage.name);
    const { pending, ackPending, ackFloor } = await stateNow();
    expect(pending + ackPending).toBeGreaterThan(40_000);
    await sleep(500);
    expect(await stateNow()).toMatchObject({ pending, ackPending, ackFloor });
  }, 60_000);
});
