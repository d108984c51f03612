/** The ready count of a queue on a real bus: exact, and of what lies in an interval alone. */
import { describe, expect, it } from "vitest";
import type { Delivery } from "../../src/core/message.ts";
import { Client, numberOf, requeue } from "./queue-client.ts";
import { until } from "./queue-site.ts";
import { setStage } from "./queue-stage.ts";

const stage = setStage("ready");

describe("ready", () => {
  it("is exact after every step", async () => {
    expect(await stage.cursor.ready()).toBe(0);
    await stage.publish(20);
    await until(async () => (await stage.cursor.ready()) === 20);
    const held = [await stage.take(), await stage.take(), await stage.take()];
    expect(await stage.cursor.ready()).toBe(17);
    held[0]?.settle("complete");
    held[1]?.settle("requeue");
    expect(await stage.cursor.ready()).toBe(18);
    expect(numberOf(await stage.take())).toBe(1);
    held[2]?.settle("discard");
    expect(await stage.cursor.ready()).toBe(17);
    const client = new Client(5);
    const subscription = stage.subscribe(client);
    await until(() => client.got.length === 5);
    expect(await stage.cursor.ready()).toBe(12);
    subscription.cancel();
    expect(await stage.cursor.ready()).toBe(12);
    requeue(client.got);
    expect(await stage.cursor.ready()).toBe(17);
  });

  it("is exact through random steps", async () => {
    const held: Delivery[] = [];
    let ready = 0;
    let seed = 42;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    for (let step = 0; step < 200; step++) {
      const what = random(4);
      if (what === 0) {
        const more = random(5);
        if (more > 0) await stage.publish(more);
        ready += more;
      } else if (what === 1) {
        const delivery = await stage.cursor.get(true);
        expect(delivery !== undefined).toBe(ready > 0);
        if (delivery !== undefined) {
          held.push(delivery);
          ready--;
        }
      } else if (held.length > 0) {
        const [delivery] = held.splice(random(held.length), 1);
        const back = what === 2;
        delivery?.settle(back ? "requeue" : "complete");
        if (back) ready++;
      }
      // The cursor may hear of what was just stored a moment later; never of less than nothing.
      if (what === 0) await until(async () => (await stage.cursor.ready()) === ready);
      expect(await stage.cursor.ready()).toBe(ready);
    }
  });

  it("leaves out what lies outside every interval: before a binding, after its end, and between two", async () => {
    const key = `${stage.name}-key`;
    await stage.publish(2);
    await stage.site.widen(stage.name, "d", key);
    await stage.site.publish(`amqp.d.${key}`, 10);
    expect(await stage.cursor.ready()).toBe(2);
    await stage.site.openInterval(stage.name, "d", key, await stage.site.bus.lastSequence());
    expect(await stage.cursor.ready()).toBe(2);
    await stage.site.publish(`amqp.d.${key}`, 5);
    expect(await stage.cursor.ready()).toBe(7);
    await stage.site.unbind(stage.name, "d", key);
    await stage.site.publish(`amqp.d.${key}`, 20);
    await stage.publish(1);
    expect(await stage.cursor.ready()).toBe(8);
    await stage.site.bind(stage.name, "d", key);
    await stage.site.publish(`amqp.d.${key}`, 3);
    expect(await stage.cursor.ready()).toBe(11);
    let got = 0;
    for (let left = 11; left > 0; left--) {
      (await stage.take()).settle("complete");
      got++;
      expect(await stage.cursor.ready()).toBe(left - 1);
    }
    expect(await stage.cursor.get(true)).toBeUndefined();
    expect(got).toBe(11);
    await stage.expectEmpty();
  });

  it("takes one look if it need not know of the last milliseconds, where every binding is open and began at or below what was delivered", async () => {
    await stage.site.bind(stage.name, "d", `${stage.name}-key`);
    await stage.site.publish(`amqp.d.${stage.name}-key`, 4);
    (await stage.take()).settle("complete");
    // As the other replicas are asked before a count.
    await stage.cursor.holding();
    const requests = new Set<string>();
    const { bus } = stage.site;
    const spied = stage.site.cursorOn(
      stage.name,
      new Proxy(bus, {
        get: (target, property) => {
          const value: unknown = Reflect.get(target, property, target);
          if (typeof value !== "function") return value;
          return (...args: unknown[]): unknown => {
            requests.add(String(property));
            return Reflect.apply(value, target, args);
          };
        },
      }),
    );
    expect(await spied.ready(true)).toBe(3);
    expect(requests).toEqual(new Set(["cursorState"]));
    expect(await spied.ready()).toBe(3);
    expect(requests).toEqual(new Set(["cursorState", "logState", "count"]));
    await spied.close();
  });

  it("is never less than nothing, whichever server counts, and how far that one lags", async () => {
    const key = `${stage.name}-key`;
    await stage.site.bind(stage.name, "d", key);
    await stage.site.publish(`amqp.d.${key}`, 5);
    await stage.site.unbind(stage.name, "d", key);
    let asked = 0;
    const own = stage.site.cursorOn(
      stage.name,
      new Proxy(stage.site.bus, {
        get: (target, property) => {
          // The first that is asked of a stretch has heard of one message, the second of all, and of more than there is.
          if (property === "count") return async () => (asked++ % 2 === 0 ? 1 : 40);
          const value: unknown = Reflect.get(target, property, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      }),
    );
    for (let looks = 0; looks < 4; looks++) expect(await own.ready(true)).toBeGreaterThanOrEqual(0);
    await own.close();
  });

  it("gives a bound, and says so once, where a pending interval begins too far from the log's end", async () => {
    const notes: string[] = [];
    const own = stage.site.cursor(stage.name, { note: (text) => notes.push(text) });
    const key = `${stage.name}-key`;
    await stage.site.widen(stage.name, "d", key);
    await stage.site.publish(`amqp.d.${key}`, 1);
    await stage.site.openInterval(stage.name, "d", key, await stage.site.bus.lastSequence());
    await stage.site.declare(`${stage.name}-far`);
    for (let round = 0; round < 13; round++) await stage.site.publish(`amqp._.${stage.name}-far`, 4_000);
    await stage.site.publish(`amqp.d.${key}`, 1);
    // The cursor's own number lags a PubAck; nothing else counts here.
    await expect.poll(() => own.ready(), { timeout: 10_000 }).toBe(2);
    expect(await own.ready()).toBe(2);
    expect(notes).toHaveLength(1);
    await own.close();
  }, 60_000);
});
