/** The verbs of a queue on a real bus: get, purge, the ready count, emptying before deletion. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Bus, CursorState } from "../../src/core/bus.ts";
import { emptyCursor } from "../../src/core/drain.ts";
import type { Delivery } from "../../src/core/message.ts";
import type { QueueCursor } from "../../src/core/queue.ts";
import { Client, numberOf, numbers, requeue, Site, until } from "./queue-site.ts";

let site: Site;
let cursor: QueueCursor;
let name = "";
let count = 0;

beforeAll(async () => {
  site = await Site.open();
});

afterAll(async () => {
  await site.close();
});

beforeEach(async () => {
  name = `verbs-${count++}`;
  await site.declare(name);
  cursor = site.cursor(name);
});

afterEach(async () => {
  await cursor.close();
});

const subject = (): string => `amqp._.${name}`;
const acknowledged = (client: Client) => ({ acknowledge: true, exclusive: false, credits: client.credits });

async function take(from: QueueCursor = cursor): Promise<Delivery> {
  const delivery = await from.get(true);
  if (delivery === undefined) throw new Error("empty");
  return delivery;
}

describe("get", () => {
  it("takes what is there in order, and then nothing", async () => {
    await site.publish(subject(), 3);
    const got = [await take(), await take(), await take()];
    expect(got.map(numberOf)).toEqual(numbers(3));
    expect(await cursor.get(true)).toBeUndefined();
    expect(cursor.held).toBe(3);
    for (const delivery of got) delivery.settle("complete");
    await site.expectEmpty(name);
  });

  it("sees what was put back just before: 300 of 300", async () => {
    await site.publish(subject(), 1);
    let delivery = await take();
    expect(delivery.redelivered).toBe(false);
    for (let round = 0; round < 300; round++) {
      delivery.settle("requeue");
      delivery = await take();
      expect(delivery.redelivered).toBe(true);
    }
  });

  it("serves callers that come together in their order, and the others with nothing", async () => {
    await site.publish(subject(), 5);
    const got = await Promise.all(Array.from({ length: 8 }, () => cursor.get(false)));
    expect(got.map((delivery) => delivery && numberOf(delivery))).toEqual([
      ...numbers(5),
      ...Array.from({ length: 3 }, () => undefined),
    ]);
    expect(cursor.held).toBe(0);
    await site.expectEmpty(name);
  });

  it("skips what has expired and what no binding holds", async () => {
    await site.widen(name, "d", `${name}-key`);
    await site.publish(`amqp.d.${name}-key`, 5);
    await site.publish(subject(), 5, { first: 5, lifetime: 0 });
    await site.publish(subject(), 1, { first: 10 });
    expect(numberOf(await take())).toBe(10);
    expect(await cursor.get(true)).toBeUndefined();
  });

  it("finds the queue empty while a consumer waits for messages", async () => {
    const client = new Client(10);
    cursor.subscribe(client, acknowledged(client));
    await until(() => cursor.state === "pulling");
    const began = Date.now();
    for (let round = 0; round < 5; round++) expect(await cursor.get(true)).toBeUndefined();
    expect(Date.now() - began).toBeLessThan(1_000);
    await site.publish(subject(), 1);
    await until(() => client.got.length === 1);
  });

  it("finds what was stored just before: 500 of 500", async () => {
    for (let round = 0; round < 500; round++) {
      await site.publish(subject(), 1, { first: round });
      expect(await cursor.ready()).toBe(1);
      expect(numberOf((await cursor.get(false)) as Delivery)).toBe(round);
    }
  });

  it("is done at once without acknowledgement", async () => {
    await site.publish(subject(), 1);
    const delivery = await cursor.get(false);
    delivery?.settle("requeue");
    expect(cursor.held).toBe(0);
    await site.expectEmpty(name);
  });
});

describe("purge", () => {
  it("removes what is ready, put back or never out, and spares what is held", async () => {
    await site.publish(subject(), 3_000);
    const held = [await take(), await take(), await take(), await take()];
    held[0]?.settle("requeue");
    held[2]?.settle("requeue");
    expect(await cursor.purge()).toBe(2_998);
    expect(cursor.held).toBe(2);
    expect(await cursor.ready()).toBe(0);
    held[1]?.settle("requeue");
    expect(numberOf(await take())).toBe(1);
    expect(await cursor.purge()).toBe(0);
  });

  it("counts neither what has expired nor what no binding holds, and removes both", async () => {
    await site.widen(name, "d", `${name}-key`);
    await site.publish(`amqp.d.${name}-key`, 5);
    await site.publish(subject(), 4, { lifetime: 1 });
    await site.publish(subject(), 3);
    await sleep(5);
    expect(await cursor.purge()).toBe(3);
    await site.expectEmpty(name);
  });

  it("goes on with the consumers after it, which keep what they hold", async () => {
    const client = new Client(10);
    cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 500);
    await until(() => client.got.length === 10);
    expect(await cursor.purge()).toBe(490);
    await site.publish(subject(), 20, { first: 500 });
    client.ackAll();
    await until(() => client.got.length === 20);
    client.ackAll();
    await until(() => client.got.length === 30);
    expect(client.numbers).toEqual([...numbers(10), ...numbers(20, 500)]);
    client.ackAll();
    await site.expectEmpty(name);
  });

  it("leaves what comes after its start, in order and not flagged", async () => {
    await site.publish(subject(), 2_000);
    const purged = cursor.purge();
    await site.publish(subject(), 1_000, { first: 2_000 });
    const gone = await purged;
    const client = new Client(5_000);
    cursor.subscribe(client, acknowledged(client));
    await until(() => client.got.length === 3_000 - gone);
    expect(gone).toBeGreaterThanOrEqual(2_000);
    expect(client.numbers).toEqual(numbers(3_000 - gone, gone));
    expect(client.got.filter(({ redelivered }) => redelivered)).toEqual([]);
  });
});

describe("ready", () => {
  it("is exact after every step", async () => {
    expect(await cursor.ready()).toBe(0);
    await site.publish(subject(), 20);
    await until(async () => (await cursor.ready()) === 20);
    const held = [await take(), await take(), await take()];
    expect(await cursor.ready()).toBe(17);
    held[0]?.settle("complete");
    held[1]?.settle("requeue");
    expect(await cursor.ready()).toBe(18);
    expect(numberOf(await take())).toBe(1);
    held[2]?.settle("discard");
    expect(await cursor.ready()).toBe(17);
    const client = new Client(5);
    const subscription = cursor.subscribe(client, acknowledged(client));
    await until(() => client.got.length === 5);
    expect(await cursor.ready()).toBe(12);
    subscription.cancel();
    expect(await cursor.ready()).toBe(12);
    requeue(client.got);
    expect(await cursor.ready()).toBe(17);
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
        if (more > 0) await site.publish(subject(), more);
        ready += more;
      } else if (what === 1) {
        const delivery = await cursor.get(true);
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
      if (what === 0) await until(async () => (await cursor.ready()) === ready);
      expect(await cursor.ready()).toBe(ready);
    }
  });

  it("leaves out what lies outside every interval: before a binding, after its end, and between two", async () => {
    const key = `${name}-key`;
    await site.publish(subject(), 2);
    await site.widen(name, "d", key);
    await site.publish(`amqp.d.${key}`, 10);
    expect(await cursor.ready()).toBe(2);
    await site.openInterval(name, "d", key, await site.bus.lastSequence());
    expect(await cursor.ready()).toBe(2);
    await site.publish(`amqp.d.${key}`, 5);
    expect(await cursor.ready()).toBe(7);
    await site.unbind(name, "d", key);
    await site.publish(`amqp.d.${key}`, 20);
    await site.publish(subject(), 1);
    expect(await cursor.ready()).toBe(8);
    await site.bind(name, "d", key);
    await site.publish(`amqp.d.${key}`, 3);
    expect(await cursor.ready()).toBe(11);
    let got = 0;
    for (let left = 11; left > 0; left--) {
      (await take()).settle("complete");
      got++;
      expect(await cursor.ready()).toBe(left - 1);
    }
    expect(await cursor.get(true)).toBeUndefined();
    expect(got).toBe(11);
    await site.expectEmpty(name);
  });

  it("takes one look if it need not know of the last milliseconds, where every binding is open and began at or below what was delivered", async () => {
    await site.bind(name, "d", `${name}-key`);
    await site.publish(`amqp.d.${name}-key`, 4);
    (await take()).settle("complete");
    // As the other replicas are asked before a count.
    await cursor.holding();
    const requests = new Set<string>();
    const { bus } = site;
    const spied = site.cursorOn(
      name,
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

  it("gives a bound, and says so once, where a pending interval begins too far from the log's end", async () => {
    const notes: string[] = [];
    const own = site.cursor(name, { note: (text) => notes.push(text) });
    const key = `${name}-key`;
    await site.widen(name, "d", key);
    await site.publish(`amqp.d.${key}`, 1);
    await site.openInterval(name, "d", key, await site.bus.lastSequence());
    await site.declare(`${name}-far`);
    for (let round = 0; round < 13; round++) await site.publish(`amqp._.${name}-far`, 4_000);
    await site.publish(`amqp.d.${key}`, 1);
    expect(await own.ready()).toBe(2);
    expect(await own.ready()).toBe(2);
    expect(notes).toHaveLength(1);
    await own.close();
  }, 60_000);
});

describe("a queue that ends", () => {
  /** The real bus; `known` are the queues that were pulled from and not forgotten since. */
  function remembering(known: Set<string>): Bus {
    return new Proxy<Bus>(site.bus, {
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
      const own = site.cursorOn(name, remembering(known));
      await site.publish(subject(), 3);
      const client = new Client(1);
      own.subscribe(client, acknowledged(client));
      await until(() => client.got.length === 1);
      await own.get(false);
      expect([...known]).toEqual([name]);
      await own[end]();
      expect([...known]).toEqual([]);
    },
  );
});

describe("emptyCursor", () => {
  async function stateNow(): Promise<CursorState> {
    const state = await site.bus.cursorState(name);
    if (state === undefined) throw new Error(`no cursor ${name}`);
    return state;
  }

  it("does nothing near the log's end or to an empty cursor", async () => {
    expect(await emptyCursor(site.bus, await stateNow())).toBeUndefined();
    await site.publish(subject(), 10);
    expect(await emptyCursor(site.bus, await stateNow())).toBeUndefined();
    expect(await cursor.ready()).toBe(10);
  });

  it("empties a long backlog, held and put back ones too, and begins again after a crash", async () => {
    const client = new Client(40);
    cursor.subscribe(client, acknowledged(client));
    for (let round = 0; round < 14; round++) await site.publish(subject(), 4_000);
    await until(() => client.got.length === 40);
    requeue(client.got.slice(10, 20));
    cursor.gone();
    const state = await stateNow();
    const first = emptyCursor(site.bus, state);
    const again = emptyCursor(site.bus, state);
    const drained = Math.max((await first) ?? 0, (await again) ?? 0);
    expect(drained).toBeGreaterThan(0);
    await site.expectEmpty(name);
    await site.publish(subject(), 7);
    expect(await site.bus.deleteCursor(name)).toBe(true);
    await site.bus.collect([subject()], drained);
    expect(await site.bus.count([subject()], 0)).toBe(0);
  }, 60_000);
});
