/** The delivery path on a real bus: credit, order, intervals, expiry. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { Credit } from "../../src/core/credit.ts";
import { acknowledged, Client, numbers } from "./queue-client.ts";
import { until } from "./queue-site.ts";
import { setStage } from "./queue-stage.ts";

const stage = setStage("deliver");

describe("credit", () => {
  it("delivers in order, with key and body, and never more than the prefetch", async () => {
    const client = new Client(7);
    stage.subscribe(client);
    await stage.publish(200);
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
    expect(client.got[0]).toMatchObject({ exchange: "", routingKey: stage.name, redelivered: false });
    expect(stage.cursor.held).toBe(0);
    await stage.expectEmpty();
  });

  it("lives with a prefetch of 1", async () => {
    const client = new Client(1);
    stage.subscribe(client);
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    await stage.publish(100);
    await until(() => client.got.length === 100);
    expect(client.most).toBe(1);
    expect(client.numbers).toEqual(numbers(100));
  });

  it("deals in turns", async () => {
    const clients = [new Client(100), new Client(100)];
    for (const client of clients) stage.subscribe(client);
    await stage.publish(100);
    await until(() => clients.every((client) => client.got.length === 50));
    expect(clients[0]?.numbers).toEqual(numbers(100).filter((each) => each % 2 === 0));
    expect(clients[1]?.numbers).toEqual(numbers(100).filter((each) => each % 2 === 1));
  });

  it("keeps a credit that two queues share, loses nothing and flags nothing", async () => {
    const other = `${stage.name}-other`;
    await stage.site.declare(other);
    const second = stage.site.cursor(other);
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
    await stage.publish(150);
    await stage.site.publish(`amqp._.${other}`, 150);
    stage.subscribe(clients[0]);
    second.subscribe(clients[1], acknowledged(clients[1]));
    await until(() => clients.every((client) => client.got.length >= 150), 20_000);
    expect(most).toBe(3);
    for (const client of clients) {
      expect(client.numbers).toEqual(numbers(150));
      expect(client.got.filter(({ redelivered }) => redelivered)).toEqual([]);
    }
    await second.close();
    await stage.site.expectEmpty(other);
  });

  it("delivers nothing more while a credit is below zero, and goes on when it is granted", async () => {
    const client = new Client(5);
    const [credit] = client.credits;
    stage.subscribe(client);
    await stage.publish(20);
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
    stage.cursor.subscribe(client, { acknowledge: false, exclusive: false, credits: client.credits });
    await stage.publish(500);
    await until(() => client.got.length === 500);
    expect(stage.cursor.held).toBe(0);
    await stage.expectEmpty();
    expect(client.numbers).toEqual(numbers(500));
  });
});

describe("intervals", () => {
  it("acknowledges silently what is older than the binding, and what came after it was undone", async () => {
    const key = `${stage.name}-key`;
    await stage.site.widen(stage.name, "d", key);
    await stage.site.publish(`amqp.d.${key}`, 10);
    await stage.site.openInterval(stage.name, "d", key, await stage.site.bus.lastSequence());
    await stage.site.publish(`amqp.d.${key}`, 10, { first: 10 });
    await stage.site.unbind(stage.name, "d", key);
    await stage.site.publish(`amqp.d.${key}`, 10, { first: 20 });
    await stage.publish(1, { first: 30 });
    const client = new Client(3);
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    stage.subscribe(client);
    await until(() => client.got.length === 11);
    await until(() => client.unsettled.size === 0);
    expect(client.numbers).toEqual([...numbers(10, 10), 30]);
    expect(client.got[0]).toMatchObject({ exchange: "d", routingKey: key });
    await stage.expectEmpty();
  });
});

describe("a mirror that is behind", () => {
  it("loses nothing that another replica bound, and keeps the order behind what had to wait", async () => {
    const other = await stage.site.otherTopology();
    const client = new Client(10_000);
    stage.subscribe(client);
    for (let round = 0; round < 40; round++) {
      const key = `${stage.name}-${round}`;
      await stage.site.widen(stage.name, "d", key);
      await stage.site.openInterval(stage.name, "d", key, await stage.site.bus.lastSequence(), other);
      await Promise.all([
        stage.site.publish(`amqp.d.${key}`, 5, { first: round * 10 }),
        stage.publish(5, { first: round * 10 + 5 }),
      ]);
    }
    await until(() => client.got.length === 400);
    expect(client.numbers).toEqual(numbers(400));
    await other.close();
  });
});

describe("expiry", () => {
  it("never delivers what has expired, and delivers what has not", async () => {
    await stage.publish(3, { lifetime: 30 });
    await stage.publish(3, { first: 3, lifetime: 60000 });
    await sleep(60);
    const client = new Client(1);
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    stage.subscribe(client);
    await until(() => client.got.length === 3);
    expect(client.numbers).toEqual(numbers(3, 3));
  });

  it("delivers a lifetime of 0 to whoever waits, and to nobody else", async () => {
    await stage.publish(2, { lifetime: 0 });
    await sleep(5);
    const client = new Client(1);
    client.onDeliver = (delivery) => setImmediate(() => client.ack(delivery));
    stage.subscribe(client);
    await until(async () => (await stage.site.bus.cursorState(stage.name))?.pending === 0);
    await sleep(50);
    expect(client.got).toEqual([]);
    await stage.publish(1, { first: 2, lifetime: 0 });
    await until(() => client.got.length === 1);
    expect(client.numbers).toEqual([2]);
  });
});

describe("a bus that cannot be asked of the topology", () => {
  it("gets back what no interval is known to hold, and nobody is given it", async () => {
    const client = new Client(10);
    await stage.site.widen(stage.name, "x", "k");
    stage.subscribe(client);
    await until(() => stage.cursor.state === "pulling");
    const fence = vi.spyOn(stage.site.topology, "fence").mockRejectedValueOnce(new Error("the bus did not answer"));
    await stage.site.publish("amqp.x.k", 1, { first: 7 });
    await stage.publish(1);
    await until(() => client.got.length >= 1);
    await sleep(100);
    expect(fence.mock.calls.length).toBeGreaterThan(1);
    expect(client.numbers).toEqual([0]);
    client.ackAll();
    await stage.expectEmpty();
    fence.mockRestore();
  });
});
