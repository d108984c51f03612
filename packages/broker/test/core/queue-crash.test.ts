/** A queue whose bus or whose process dies: what is held stays held, what is nobody's comes back at once. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Bus, PullLine, PullSink } from "../../src/core/bus.ts";
import type { QueueCursor } from "../../src/core/queue.ts";
import { acknowledged, Client, numberOf, numbers, requeue } from "./queue-client.ts";
import { until } from "./queue-site.ts";
import { setStage } from "./queue-stage.ts";

const stage = setStage("crash");

/** The bus writes down the first of what it gives out at once, and what follows only a moment later: so it forgets that. */
async function oneByOne(client: Client, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await stage.publish(1, { first: n });
    while (client.got.length <= n) await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("a process that died", () => {
  it("leaves nothing behind that a sweep does not put back, in order and flagged", async () => {
    const dead = new Client(100);
    stage.subscribe(dead);
    await stage.publish(200);
    await until(() => dead.got.length === 100);
    for (const delivery of dead.got.slice(0, 10)) delivery.settle("complete");
    for (const delivery of dead.got.slice(50, 60)) delivery.settle("complete");
    await stage.site.bus.settled(stage.name);
    stage.site.abandon(stage.cursor);
    const next = stage.site.cursor(stage.name, { suspectBelow: await stage.site.bus.lastSequence() });
    const held = await next.get(true);
    expect(held && Number(Buffer.from(held.body).toString())).toBe(100);
    await next.sweep();
    const client = new Client(500);
    next.subscribe(client, acknowledged(client));
    await until(() => client.got.length === 179);
    expect(client.numbers).toEqual([...numbers(40, 10), ...numbers(40, 60), ...numbers(99, 101)]);
    expect(client.got.slice(0, 80).every(({ redelivered }) => redelivered)).toBe(true);
    client.ackAll();
    held?.settle("complete");
    await stage.expectEmpty();
    await next.close();
  });

  it("flags what another replica's client was given before the bus lost its count of it", async () => {
    const first = stage.site.cursor(stage.name);
    const next = stage.site.cursor(stage.name, {
      sweep: async () => {
        const held = await first.pause();
        await next.sweep(new Set(held));
        return Math.max(first.written, next.written);
      },
    });
    const [before, after] = [new Client(3), new Client(10)];
    first.subscribe(before, acknowledged(before));
    await oneByOne(before, 3);
    await stage.site.crash();
    await stage.publish(2, { first: 3 });
    stage.site.abandon(first);
    next.subscribe(after, acknowledged(after));
    await until(() => after.got.length >= 2);
    await next.sweep();
    await until(() => after.got.length === 5);
    const flagged = after.got.filter(({ redelivered }) => redelivered).map(numberOf);
    expect(flagged.sort((a, b) => a - b)).toEqual(numbers(3));
    after.ackAll();
    await next.close();
  });

  it("flags it also where whoever gave it out is gone before another replica comes", async () => {
    const first = stage.site.cursor(stage.name);
    const [before, after] = [new Client(3), new Client(10)];
    first.subscribe(before, acknowledged(before));
    await oneByOne(before, 3);
    await stage.site.crash();
    await stage.publish(2, { first: 3 });
    await until(() => (stage.site.topology.queue(stage.name)?.suspect ?? 0) > 0);
    stage.site.abandon(first);
    const next = stage.site.cursor(stage.name);
    next.subscribe(after, acknowledged(after));
    await next.sweep();
    await until(() => after.got.length === 5);
    const flagged = after.got.filter(({ redelivered }) => redelivered).map(numberOf);
    expect(flagged.sort((a, b) => a - b)).toEqual(numbers(3));
    after.ackAll();
    await next.close();
  });

  it("spares what other replicas hold", async () => {
    await stage.publish(5);
    const other = new Client(3);
    stage.subscribe(other);
    await until(() => other.got.length === 3);
    const next = stage.site.cursor(stage.name, { heldElsewhere: async () => new Set(stage.cursor.heldSequences) });
    expect(await next.ready()).toBe(2);
    await next.sweep(new Set(stage.cursor.heldSequences));
    expect(await next.ready()).toBe(2);
    expect(await next.purge()).toBe(2);
    other.ackAll();
    await stage.cursor.close();
    await stage.expectEmpty();
    await next.close();
  });
});

describe("a bus that loses what it was asked", () => {
  /** The real bus, whose next pull is cut off with whatever is under way, as at a change of leader. */
  function cutting(bus: Bus): Bus {
    let cut = false;
    return new Proxy(bus, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (property !== "openPull" || cut) return typeof value === "function" ? value.bind(target) : value;
        return (queue: string, sink: PullSink): PullLine => {
          cut = true;
          let asked = 0;
          const line = target.openPull(queue, { message: () => {}, ended: () => {} });
          return {
            ask: (count, wait) => {
              asked += count;
              line.ask(count, wait);
              setTimeout(() => sink.ended(asked, "lost"), 50);
            },
            takeBack: () => line.takeBack(),
          };
        };
      },
    });
  }

  it("delivers what was under way again, in order", async () => {
    await stage.publish(100);
    const own = stage.site.cursorOn(stage.name, cutting(stage.site.bus));
    const client = new Client(60);
    own.subscribe(client, acknowledged(client));
    await until(() => client.got.length === 60);
    expect(client.numbers).toEqual(numbers(60));
    await own.close();
  });

  it("reads and purges what was under way", async () => {
    await stage.publish(10);
    const reader = stage.site.cursorOn(stage.name, cutting(stage.site.bus));
    const got = await reader.get(true);
    expect(got && Number(Buffer.from(got.body).toString())).toBe(0);
    const elsewhere = (): ReadonlySet<number> => new Set(reader.heldSequences);
    const purger: QueueCursor = stage.site.cursorOn(stage.name, cutting(stage.site.bus), {
      heldElsewhere: async () => elsewhere(),
      sweep: async () => {
        await purger.sweep(elsewhere());
        return purger.written;
      },
    });
    expect(await purger.purge()).toBe(9);
    got?.settle("complete");
    await stage.expectEmpty();
    await reader.close();
    await purger.close();
  });
});

describe("a bus that died", () => {
  it("is asked for nothing before it is known what it forgot: an ask that survived brings nobody anything", async () => {
    const client = new Client(10);
    stage.subscribe(client);
    await until(() => stage.cursor.state === "pulling");
    stage.cursor.away();
    await stage.publish(3);
    await sleep(100);
    expect(client.got).toEqual([]);
    stage.cursor.back(true);
    await until(() => client.got.length === 3);
    expect(client.numbers).toEqual(numbers(3));
    client.ackAll();
    await stage.expectEmpty();
  });

  it("is healed: held messages stay with their clients, put back ones come at once, none is lost or had twice", async () => {
    const client = new Client(30);
    stage.subscribe(client);
    await stage.publish(100);
    await until(() => client.got.length === 30);
    // Long enough ago that the bus has written it down.
    await sleep(300);
    const [held] = client.got;
    await stage.site.crash();
    // The same delivery settles still, and everything goes on.
    client.ackAll();
    await until(() => client.got.length === 60, 10_000);
    expect(client.numbers).toEqual(numbers(60));
    expect(held?.redelivered).toBe(false);
    while (client.got.length < 100) {
      client.ackAll();
      await sleep(5);
    }
    client.ackAll();
    expect(client.numbers).toEqual(numbers(100));
    await stage.expectEmpty();
  }, 30_000);

  it("brings back what was put back just before it died, flagged, without the ack wait", async () => {
    await stage.publish(50);
    const client = new Client(50);
    const subscription = stage.subscribe(client);
    await until(() => client.got.length === 50);
    subscription.cancel();
    requeue(client.got.slice(20));
    await stage.site.bus.settled(stage.name);
    await stage.site.crash();
    const next = new Client(100);
    stage.subscribe(next);
    await until(() => next.got.length === 30, 10_000);
    expect(next.numbers.sort((a, b) => a - b)).toEqual(numbers(30, 20));
    expect(next.got.every(({ redelivered }) => redelivered)).toBe(true);
    client.ackAll();
    next.ackAll();
    await stage.expectEmpty();
  }, 30_000);

  it("settles when it is back what was settled while it was away", async () => {
    await stage.publish(10);
    const client = new Client(10);
    stage.subscribe(client);
    await until(() => client.got.length === 10);
    await sleep(300);
    const crashed = stage.site.crash(300);
    await sleep(150);
    for (const delivery of client.got.slice(0, 8)) delivery.settle("complete");
    requeue(client.got.slice(8));
    client.credits[0]?.grant(10);
    await crashed;
    await until(() => client.got.length === 12, 10_000);
    await sleep(100);
    expect(client.numbers).toEqual([...numbers(10), 8, 9]);
    expect(client.got.slice(10).every(({ redelivered }) => redelivered)).toBe(true);
    client.ackAll();
    await stage.expectEmpty();
  }, 30_000);

  it("flags what was acknowledged in its last moments and comes again, and delivers no copy of what is held", async () => {
    await stage.publish(1_000);
    const client = new Client(1_000);
    client.onDeliver = (delivery) => {
      // Every second one is acknowledged at once, the others stay held.
      if (delivery.sequence % 2 === 0) client.ack(delivery);
    };
    stage.subscribe(client);
    await until(() => client.got.length === 1_000);
    const held = new Set([...client.unsettled].map(({ sequence }) => sequence));
    await stage.site.crash();
    await sleep(1_000);
    const again = client.got.slice(1_000);
    expect(again.every(({ redelivered }) => redelivered)).toBe(true);
    expect(again.filter(({ sequence }) => held.has(sequence))).toEqual([]);
    client.ackAll();
    await until(async () => (await stage.site.bus.cursorState(stage.name))?.ackPending === 0, 10_000);
  }, 30_000);
});
