/** The delivery path on a real bus: credit, turns, order, flags, intervals, expiry. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { Credit } from "../../src/core/credit.ts";
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
  name = `deliver-${count++}`;
  await site.declare(name);
  cursor = site.cursor(name);
});

afterEach(async () => {
  site.lease = true;
  await cursor.close();
});

const subject = (): string => `amqp._.${name}`;
const acknowledged = (client: Client) => ({ acknowledge: true, exclusive: false, credits: client.credits });

describe("credit", () => {
  it("delivers in order, with key and body, and never more than the prefetch", async () => {
    const client = new Client(7);
    cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 200);
    await until(() => client.got.length === 7);
    await sleep(30);
    expect(client.got).toHaveLength(7);
    while (client.got.length < 200) {
      client.ackAll();
      await sleep(1);
    }
    client.ackAll();
    expect(client.most).toBe(7);
    expect(client.numbers).toEqual(numbers(200));
    expect(client.got[0]).toMatchObject({ exchange: "", routingKey: name, redelivered: false });
    expect(cursor.held).toBe(0);
    await site.expectEmpty(name);
  });

  it("lives with a prefetch of 1", async () => {
    const client = new Client(1);
    cursor.subscribe(client, acknowledged(client));
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    await site.publish(subject(), 100);
    await until(() => client.got.length === 100);
    expect(client.most).toBe(1);
    expect(client.numbers).toEqual(numbers(100));
  });

  it("deals in turns", async () => {
    const clients = [new Client(100), new Client(100)];
    for (const client of clients) cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 100);
    await until(() => clients.every((client) => client.got.length === 50));
    expect(clients[0]?.numbers).toEqual(numbers(100).filter((each) => each % 2 === 0));
    expect(clients[1]?.numbers).toEqual(numbers(100).filter((each) => each % 2 === 1));
  });

  it("keeps a credit that two queues share, loses nothing and flags nothing", async () => {
    const other = `${name}-other`;
    await site.declare(other);
    const second = site.cursor(other);
    const shared = new Credit(3);
    const clients = [new Client([shared]), new Client([shared])] as const;
    let out = 0;
    let most = 0;
    for (const client of clients) {
      client.onDeliver = (delivery) => {
        most = Math.max(most, ++out);
        setImmediate(() => {
          out--;
          client.ack(delivery);
        });
      };
    }
    await site.publish(subject(), 150);
    await site.publish(`amqp._.${other}`, 150);
    cursor.subscribe(clients[0], acknowledged(clients[0]));
    second.subscribe(clients[1], acknowledged(clients[1]));
    await until(() => clients.every((client) => client.got.length >= 150), 20_000);
    expect(most).toBe(3);
    for (const client of clients) {
      expect(client.numbers).toEqual(numbers(150));
      expect(client.got.filter(({ redelivered }) => redelivered)).toEqual([]);
    }
    await second.close();
    await site.expectEmpty(other);
  });

  it("delivers nothing more while a credit is below zero, and goes on when it is granted", async () => {
    const client = new Client(5);
    const [credit] = client.credits;
    cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 20);
    await until(() => client.got.length === 5);
    credit?.grant(-3);
    client.ackAll();
    await until(() => client.got.length === 7);
    await sleep(30);
    expect(client.got).toHaveLength(7);
    credit?.grant(100);
    await until(() => client.got.length === 20);
    expect(client.numbers).toEqual(numbers(20));
  });
});

describe("without acknowledgement", () => {
  it("is done once it is delivered, and settling it says nothing", async () => {
    const client = new Client(1_000_000);
    client.onDeliver = (delivery) => delivery.settle("requeue");
    cursor.subscribe(client, { acknowledge: false, exclusive: false, credits: client.credits });
    await site.publish(subject(), 500);
    await until(() => client.got.length === 500);
    expect(cursor.held).toBe(0);
    await site.expectEmpty(name);
    expect(client.numbers).toEqual(numbers(500));
  });
});

describe("handing back", () => {
  it("puts back in order what two subscribers held, and flags it", async () => {
    const clients = [new Client(50), new Client(50)];
    const subscriptions = clients.map((client) => cursor.subscribe(client, acknowledged(client)));
    await site.publish(subject(), 100);
    await until(() => clients.every((client) => client.got.length === 50));
    for (const subscription of subscriptions) subscription.cancel();
    requeue(clients.flatMap((client) => client.got).reverse());
    expect(cursor.held).toBe(0);
    const next = new Client(200);
    cursor.subscribe(next, acknowledged(next));
    await until(() => next.got.length === 100);
    expect(next.numbers).toEqual(numbers(100));
    expect(next.got.every(({ redelivered }) => redelivered)).toBe(true);
  });

  it("does not flag what came when nobody had credit any more", async () => {
    const first = new Client(500);
    const subscription = cursor.subscribe(first, acknowledged(first));
    // Cancelled in the middle of what is under way.
    first.onDeliver = () => {
      if (first.got.length === 20) subscription.cancel();
    };
    await site.publish(subject(), 400);
    await until(() => first.got.length === 20);
    const second = new Client(1_000);
    cursor.subscribe(second, acknowledged(second));
    await until(() => second.got.length === 380);
    expect(second.numbers).toEqual(numbers(380, 20));
    expect(second.got.filter(({ redelivered }) => redelivered)).toEqual([]);
    expect(first.got).toHaveLength(20);
  });

  it("keeps the order when a channel closes with messages held and others under way", async () => {
    for (let round = 0; round < 10; round++) {
      const first = new Client(200);
      const subscription = cursor.subscribe(first, acknowledged(first));
      first.onDeliver = () => {
        if (first.got.length !== 25) return;
        subscription.cancel();
        requeue(first.got);
      };
      await site.publish(subject(), 300);
      await until(() => first.got.length === 25);
      const second = new Client(1_000);
      const other = cursor.subscribe(second, acknowledged(second));
      await until(() => second.got.length === 300);
      expect(second.numbers).toEqual(numbers(300));
      const flagged = second.got.filter(({ redelivered }) => redelivered).map(numberOf);
      expect(flagged).toEqual(numbers(25));
      second.ackAll();
      other.cancel();
    }
  });

  it("gives what comes late to another subscriber first", async () => {
    const first = new Client(500);
    const second = new Client(1_000);
    const subscription = cursor.subscribe(first, acknowledged(first));
    cursor.subscribe(second, acknowledged(second));
    first.onDeliver = () => {
      if (first.got.length === 10) subscription.cancel();
    };
    await site.publish(subject(), 300);
    await until(() => second.got.length === 290);
    expect([...first.numbers, ...second.numbers].sort((a, b) => a - b)).toEqual(numbers(300));
    expect(second.got.filter(({ redelivered }) => redelivered)).toEqual([]);
  });

  it("loses none of 900 when consumers come and go while messages are under way", async () => {
    const seen = new Map<number, number>();
    await site.publish(subject(), 900);
    let rounds = 0;
    while (seen.size < 900 && rounds++ < 200) {
      const client = new Client(64);
      const subscription = cursor.subscribe(client, acknowledged(client));
      client.onDeliver = (delivery) => {
        const number = numberOf(delivery);
        seen.set(number, (seen.get(number) ?? 0) + 1);
        client.ack(delivery);
      };
      await sleep(rounds % 4);
      subscription.cancel();
    }
    expect([...seen.keys()].sort((a, b) => a - b)).toEqual(numbers(900));
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    await until(() => cursor.state === "idle");
    await site.expectEmpty(name);
  });

  it("redelivers at once to a waiting consumer", async () => {
    const client = new Client(1);
    cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 1);
    await until(() => client.got.length === 1);
    const began = Date.now();
    const [held] = client.got as [Delivery];
    client.unsettled.delete(held);
    held.settle("requeue");
    held.settle("complete");
    client.credits[0]?.grant(1);
    await until(() => client.got.length === 2);
    expect(Date.now() - began).toBeLessThan(1_000);
    expect(client.got[1]).toMatchObject({ sequence: held.sequence, redelivered: true });
    client.got[1]?.settle("discard");
    await site.expectEmpty(name);
  });
});

describe("intervals", () => {
  it("acknowledges silently what is older than the binding, and what came after it was undone", async () => {
    const key = `${name}-key`;
    await site.widen(name, "d", key);
    await site.publish(`amqp.d.${key}`, 10);
    await site.openInterval(name, "d", key, await site.bus.lastSequence());
    await site.publish(`amqp.d.${key}`, 10, { first: 10 });
    await site.unbind(name, "d", key);
    await site.publish(`amqp.d.${key}`, 10, { first: 20 });
    await site.publish(subject(), 1, { first: 30 });
    const client = new Client(3);
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    cursor.subscribe(client, acknowledged(client));
    await until(() => client.got.length === 11);
    await until(() => client.unsettled.size === 0);
    expect(client.numbers).toEqual([...numbers(10, 10), 30]);
    expect(client.got[0]).toMatchObject({ exchange: "d", routingKey: key });
    await site.expectEmpty(name);
  });
});

describe("a mirror that is behind", () => {
  it("loses nothing that another replica bound, and keeps the order behind what had to wait", async () => {
    const other = await site.otherTopology();
    const client = new Client(10_000);
    cursor.subscribe(client, acknowledged(client));
    for (let round = 0; round < 40; round++) {
      const key = `${name}-${round}`;
      await site.widen(name, "d", key);
      await site.openInterval(name, "d", key, await site.bus.lastSequence(), other);
      await Promise.all([
        site.publish(`amqp.d.${key}`, 5, { first: round * 10 }),
        site.publish(subject(), 5, { first: round * 10 + 5 }),
      ]);
    }
    await until(() => client.got.length === 400);
    expect(client.numbers).toEqual(numbers(400));
    await other.close();
  });
});

describe("expiry", () => {
  it("never delivers what has expired, and delivers what has not", async () => {
    await site.publish(subject(), 3, { lifetime: 30 });
    await site.publish(subject(), 3, { first: 3, lifetime: 60000 });
    await sleep(60);
    const client = new Client(1);
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    cursor.subscribe(client, acknowledged(client));
    await until(() => client.got.length === 3);
    expect(client.numbers).toEqual(numbers(3, 3));
  });

  it("delivers a lifetime of 0 to whoever waits, and to nobody else", async () => {
    await site.publish(subject(), 2, { lifetime: 0 });
    await sleep(5);
    const client = new Client(1);
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    cursor.subscribe(client, acknowledged(client));
    await until(async () => (await site.bus.cursorState(name))?.pending === 0);
    await sleep(50);
    expect(client.got).toEqual([]);
    await site.publish(subject(), 1, { first: 2, lifetime: 0 });
    await until(() => client.got.length === 1);
    expect(client.numbers).toEqual([2]);
  });
});

describe("the end of a queue", () => {
  it("tells every subscriber, in the middle of a delivery too, and settles nothing any more", async () => {
    const clients = [new Client(100), new Client(100)];
    for (const client of clients) cursor.subscribe(client, acknowledged(client));
    clients[1]?.got.length;
    const [first] = clients as [Client, Client];
    first.onDeliver = () => {
      if (first.got.length === 3) cursor.gone();
    };
    await site.publish(subject(), 50);
    await until(() => first.isCancelled);
    expect(clients.map((client) => client.isCancelled)).toEqual([true, true]);
    expect(cursor.state).toBe("gone");
    expect(cursor.consumers).toBe(0);
    await sleep(50);
    expect(clients.reduce((sum, client) => sum + client.got.length, 0)).toBe(5);
    for (const client of clients) for (const delivery of client.got) delivery.settle("complete");
    await site.bus.settled(name);
    expect((await site.bus.cursorState(name))?.ackPending).toBeGreaterThanOrEqual(5);
    expect(await cursor.get(true)).toBeUndefined();
  });

  it("hands everything back on a graceful stop", async () => {
    const client = new Client(20);
    cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 50);
    await until(() => client.got.length === 20);
    await cursor.close();
    const next = site.cursor(name);
    expect(await next.ready()).toBe(50);
    const reader = new Client(100);
    next.subscribe(reader, acknowledged(reader));
    await until(() => reader.got.length === 50);
    expect(reader.numbers).toEqual(numbers(50));
    reader.ackAll();
    await next.close();
  });
});

describe("a bus that cannot be asked of the topology", () => {
  it("gets back what no interval is known to hold, and nobody is given it", async () => {
    const client = new Client(10);
    await site.widen(name, "x", "k");
    cursor.subscribe(client, acknowledged(client));
    await until(() => cursor.state === "pulling");
    const fence = vi.spyOn(site.topology, "fence").mockRejectedValueOnce(new Error("the bus did not answer"));
    await site.publish("amqp.x.k", 1, { first: 7 });
    await site.publish(subject(), 1);
    await until(() => client.got.length >= 1);
    await sleep(100);
    expect(fence.mock.calls.length).toBeGreaterThan(1);
    expect(client.numbers).toEqual([0]);
    client.ackAll();
    await site.expectEmpty(name);
    fence.mockRestore();
  });
});

describe("the lease", () => {
  it("delivers and settles nothing without it", async () => {
    const client = new Client(5);
    cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 2);
    await until(() => client.got.length === 2);
    site.lease = false;
    client.ackAll();
    await site.publish(subject(), 2, { first: 2 });
    await sleep(50);
    expect(client.got).toHaveLength(2);
    await site.bus.settled(name);
    expect(await site.bus.cursorState(name)).toMatchObject({ pending: 0, ackPending: 4 });
    // A new lease: whatever is in nobody's hands is put back.
    site.lease = true;
    await cursor.sweep();
    await until(() => client.got.length === 6);
    expect(client.numbers.slice(2)).toEqual(numbers(4));
    expect(client.got.slice(2, 4).every(({ redelivered }) => redelivered)).toBe(true);
  });

  it("delivers nothing that was under way when it lapsed, whoever holds it now", async () => {
    const client = new Client(50);
    cursor.subscribe(client, acknowledged(client));
    await until(() => cursor.state === "pulling");
    const published = site.publish(subject(), 20);
    // As a process that stood still does: another lease is held before it reads what the bus sent it meanwhile.
    cursor.lapsed();
    await published;
    await sleep(100);
    expect(client.got).toEqual([]);
    cursor.regained(true);
    await until(() => client.got.length === 20);
    expect(client.numbers).toEqual(numbers(20));
    await sleep(50);
    expect(client.got).toHaveLength(20);
    client.ackAll();
    await site.expectEmpty(name);
  });

  it("answers for nothing that its clients got under the one before", async () => {
    const client = new Client(5);
    cursor.subscribe(client, acknowledged(client));
    await site.publish(subject(), 2);
    await until(() => client.got.length === 2);
    cursor.lapsed();
    cursor.regained(true);
    client.ackAll();
    await until(() => client.got.length === 4);
    expect(client.numbers).toEqual([...numbers(2), ...numbers(2)]);
    expect(client.got.slice(2).every(({ redelivered }) => redelivered)).toBe(true);
  });
});
