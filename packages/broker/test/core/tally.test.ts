// Counting as on a cluster, without a cursor made for it, on a real bus that says it is one.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Bus } from "../../src/core/bus.ts";
import type { QueueCursor } from "../../src/core/queue.ts";
import { setStage } from "./queue-stage.ts";

const stage = setStage("tally");

/** The stage's queue, counted as on a cluster; `asked`: what was asked of the bus. */
function clustered(): { readonly cursor: QueueCursor; readonly asked: string[]; readonly notes: string[] } {
  const asked: string[] = [];
  const notes: string[] = [];
  const bus = new Proxy<Bus>(stage.site.bus, {
    get: (target, property) => {
      if (property === "isClustered") return true;
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        asked.push(String(property));
        return Reflect.apply(value, target, args);
      };
    },
  });
  return { cursor: stage.site.cursorOn(stage.name, bus, { note: (text) => notes.push(text) }), asked, notes };
}

test("a few and many are exact, and nothing is made in the log for it", async () => {
  const { cursor, asked } = clustered();
  let messages = 0;
  for (const more of [1, 1, 62, 1, 1, 934]) {
    await stage.publish(more);
    messages += more;
    expect(await cursor.ready()).toBe(messages);
  }
  expect(asked).toContain("abreast");
  expect(asked).not.toContain("count");
  await cursor.close();
});

test("what no interval holds is left out, whether what is inside is few or what is outside", async () => {
  const { cursor, asked, notes } = clustered();
  const key = `${stage.name}-key`;
  await stage.publish(2);
  await stage.site.widen(stage.name, "d", key);
  await stage.site.publish(`amqp.d.${key}`, 100);
  expect(await cursor.ready()).toBe(2);
  await stage.publish(198);
  expect(notes).toEqual([]);
  // Two hundred inside, a hundred outside: neither is few.
  expect(await cursor.ready()).toBe(300);
  expect(notes).toHaveLength(1);
  await cursor.purge();
  await stage.site.openInterval(stage.name, "d", key, await stage.site.bus.lastSequence());
  await stage.site.publish(`amqp.d.${key}`, 100);
  await stage.site.unbind(stage.name, "d", key);
  await stage.site.publish(`amqp.d.${key}`, 20);
  await stage.publish(50);
  expect(await cursor.ready()).toBe(150);
  expect(asked).not.toContain("count");
  await cursor.close();
});

test("law: as a cursor made for it counts, through bindings that come and go", async () => {
  const { cursor } = clustered();
  const key = (number: number): string => `${stage.name}-${number}`;
  const step = fc.tuple(fc.constantFrom("publish", "bind", "unbind", "take"), fc.nat(2));
  const steps = fc.array(step, { minLength: 5, maxLength: 25 });
  for (const [what, number] of fc.sample(steps, { numRuns: 4, seed: 7 }).flat()) {
    if (what === "publish") await stage.site.publish(`amqp.d.${key(number)}`, 1 + number * 3);
    else if (what === "bind") await stage.site.bind(stage.name, "d", key(number));
    else if (what === "unbind") await stage.site.unbind(stage.name, "d", key(number));
    else (await stage.cursor.get(false))?.settle("complete");
    await stage.publish(1 + number);
    // First the one that took: it waits until the bus has processed what it settled.
    const exact = await stage.cursor.ready();
    expect(await cursor.ready()).toBe(exact);
  }
  await cursor.close();
});
