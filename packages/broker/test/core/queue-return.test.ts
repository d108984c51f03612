/** What a queue gets back from its clients: handed back, at its end, or with the lease they had it under. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Delivery } from "../../src/core/message.ts";
import { acknowledged, Client, numberOf, numbers, requeue } from "./queue-client.ts";
import { until } from "./queue-site.ts";
import { setStage } from "./queue-stage.ts";

const stage = setStage("return");

describe("handing back", () => {
  it("puts back in order what two subscribers held, and flags it", async () => {
    const clients = [new Client(50), new Client(50)];
    const subscriptions = clients.map((client) => stage.subscribe(client));
    await stage.publish(100);
    await until(() => clients.every((client) => client.got.length === 50));
    for (const subscription of subscriptions) subscription.cancel();
    requeue(clients.flatMap((client) => client.got).reverse());
    expect(stage.cursor.held).toBe(0);
    const next = new Client(200);
    stage.subscribe(next);
    await until(() => next.got.length === 100);
    expect(next.numbers).toEqual(numbers(100));
    expect(next.got.every(({ redelivered }) => redelivered)).toBe(true);
  });

  it("does not flag what came when nobody had credit any more", async () => {
    const first = new Client(500);
    const subscription = stage.subscribe(first);
    // Cancelled in the middle of what is under way.
    first.onDeliver = () => {
      if (first.got.length === 20) subscription.cancel();
    };
    await stage.publish(400);
    await until(() => first.got.length === 20);
    const second = new Client(1_000);
    stage.subscribe(second);
    await until(() => second.got.length === 380);
    expect(second.numbers).toEqual(numbers(380, 20));
    expect(second.got.filter(({ redelivered }) => redelivered)).toEqual([]);
    expect(first.got).toHaveLength(20);
  });

  it("keeps the order when a channel closes with messages held and others under way", async () => {
    for (let round = 0; round < 10; round++) {
      const first = new Client(200);
      const subscription = stage.subscribe(first);
      first.onDeliver = () => {
        if (first.got.length !== 25) return;
        subscription.cancel();
        requeue(first.got);
      };
      await stage.publish(300);
      await until(() => first.got.length === 25);
      const second = new Client(1_000);
      const other = stage.subscribe(second);
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
    const subscription = stage.subscribe(first);
    stage.subscribe(second);
    first.onDeliver = () => {
      if (first.got.length === 10) subscription.cancel();
    };
    await stage.publish(300);
    await until(() => second.got.length === 290);
    expect([...first.numbers, ...second.numbers].sort((a, b) => a - b)).toEqual(numbers(300));
    expect(second.got.filter(({ redelivered }) => redelivered)).toEqual([]);
  });

  it("loses none of 900 when consumers come and go while messages are under way", async () => {
    const seen = new Map<number, number>();
    await stage.publish(900);
    let rounds = 0;
    while (seen.size < 900 && rounds++ < 200) {
      const client = new Client(64);
      const subscription = stage.subscribe(client);
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
    await until(() => stage.cursor.state === "idle");
    await stage.expectEmpty();
  });

  it("redelivers at once to a waiting consumer", async () => {
    const client = new Client(1);
    stage.subscribe(client);
    await stage.publish(1);
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
    await stage.expectEmpty();
  });
});

describe("the end of a queue", () => {
  it("tells every subscriber, in the middle of a delivery too, and settles nothing any more", async () => {
    const clients = [new Client(100), new Client(100)];
    for (const client of clients) stage.subscribe(client);
    clients[1]?.got.length;
    const [first] = clients as [Client, Client];
    first.onDeliver = () => {
      if (first.got.length === 3) stage.cursor.gone();
    };
    await stage.publish(50);
    await until(() => first.isCancelled);
    expect(clients.map((client) => client.isCancelled)).toEqual([true, true]);
    expect(stage.cursor.state).toBe("gone");
    expect(stage.cursor.consumers).toBe(0);
    await sleep(50);
    expect(clients.reduce((sum, client) => sum + client.got.length, 0)).toBe(5);
    for (const client of clients) for (const delivery of client.got) delivery.settle("complete");
    await stage.site.bus.settled(stage.name);
    expect((await stage.site.bus.cursorState(stage.name))?.ackPending).toBeGreaterThanOrEqual(5);
    expect(await stage.cursor.get(true)).toBeUndefined();
  });

  it("hands everything back on a graceful stop", async () => {
    const client = new Client(20);
    stage.subscribe(client);
    await stage.publish(50);
    await until(() => client.got.length === 20);
    await stage.cursor.close();
    const next = stage.site.cursor(stage.name);
    expect(await next.ready()).toBe(50);
    const reader = new Client(100);
    next.subscribe(reader, acknowledged(reader));
    await until(() => reader.got.length === 50);
    expect(reader.numbers).toEqual(numbers(50));
    reader.ackAll();
    await next.close();
  });
});

describe("the lease", () => {
  it("delivers and settles nothing without it", async () => {
    const client = new Client(5);
    stage.subscribe(client);
    await stage.publish(2);
    await until(() => client.got.length === 2);
    stage.site.lease = false;
    client.ackAll();
    await stage.publish(2, { first: 2 });
    await sleep(50);
    expect(client.got).toHaveLength(2);
    await stage.site.bus.settled(stage.name);
    expect(await stage.site.bus.cursorState(stage.name)).toMatchObject({ pending: 0, ackPending: 4 });
    // A new lease: whatever is in nobody's hands is put back.
    stage.site.lease = true;
    await stage.cursor.sweep();
    await until(() => client.got.length === 6);
    expect(client.numbers.slice(2)).toEqual(numbers(4));
    expect(client.got.slice(2, 4).every(({ redelivered }) => redelivered)).toBe(true);
  });

  it("delivers nothing that was under way when it lapsed, whoever holds it now", async () => {
    const client = new Client(50);
    stage.subscribe(client);
    await until(() => stage.cursor.state === "pulling");
    const published = stage.publish(20);
    // As a process that stood still does: another lease is held before it reads what the bus sent it meanwhile.
    stage.cursor.lapsed();
    await published;
    await sleep(100);
    expect(client.got).toEqual([]);
    stage.cursor.regained(true);
    await until(() => client.got.length === 20);
    expect(client.numbers).toEqual(numbers(20));
    await sleep(50);
    expect(client.got).toHaveLength(20);
    client.ackAll();
    await stage.expectEmpty();
  });

  it("answers for nothing that its clients got under the one before", async () => {
    const client = new Client(5);
    stage.subscribe(client);
    await stage.publish(2);
    await until(() => client.got.length === 2);
    stage.cursor.lapsed();
    stage.cursor.regained(true);
    client.ackAll();
    await until(() => client.got.length === 4);
    expect(client.numbers).toEqual([...numbers(2), ...numbers(2)]);
    expect(client.got.slice(2).every(({ redelivered }) => redelivered)).toBe(true);
  });
});
