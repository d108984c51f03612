import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ExchangeRecord, QueueRecord } from "../src/entities.ts";
import { openBucket } from "../src/nats.ts";
import { Topology } from "../src/topology.ts";
import { NatsServer } from "./nats-server.ts";
import { exchangeRecord, queueRecord } from "./records.ts";

/** A small linear congruential generator: the same seed, the same run. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Everything that a mirror knows, by key. */
function dump(topology: Topology): Map<string, object> {
  const all = new Map<string, object>();
  for (const { revision: _, ...exchange } of topology.exchanges()) all.set(`x.${exchange.name}`, exchange);
  for (const { revision: _, ...queue } of topology.queues()) {
    all.set(`q.${queue.name}`, queue);
    for (const { revision: __, ...binding } of topology.bindingsOf(queue.name)) {
      all.set(`b.${binding.queue}.${binding.exchange}.${binding.key}`, binding);
    }
  }
  return all;
}

describe("two replicas", () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterAll(() => server.stop());

  it.each([1, 2, 3])(
    "law: after a fence both mirrors equal the model of what was confirmed (seed %i)",
    async (seed) => {
      const random = seeded(seed);
      const lost = (error: Error): void => {
        throw error;
      };
      const name = `seed${seed}`;
      const open = async (): Promise<Topology> =>
        Topology.open(await openBucket(await server.connect(), { name }), { root: "amqp", lost });
      const replicas = [await open(), await open()] as const;
      const model = new Map<string, object>();
      let conflicts = 0;

      const confirm = (key: string, result: "conflict" | "removed" | object): void => {
        if (result === "conflict") conflicts++;
        else if (result === "removed") model.delete(key);
        else {
          const { revision: _, ...entity } = result as { revision: number };
          model.set(key, entity);
        }
      };
      const step = async (): Promise<void> => {
        const on = replicas[random(2) as 0 | 1];
        const q = `q${random(3)}`;
        const x = `x${random(2)}`;
        const remove = random(4) === 0;
        switch (random(3)) {
          case 0: {
            const change: Partial<ExchangeRecord> = { internal: random(2) === 0, arguments: String(random(99)) };
            const present = on.exchange(x);
            if (present === undefined) confirm(`x.${x}`, await on.createExchange(x, exchangeRecord(change)));
            else confirm(`x.${x}`, await (remove ? on.removeExchange(present) : on.updateExchange(present, change)));
            break;
          }
          case 1: {
            const change: Partial<QueueRecord> = { from: random(99) };
            const present = on.queue(q);
            if (present === undefined) confirm(`q.${q}`, await on.createQueue(q, queueRecord(change)));
            else confirm(`q.${q}`, await (remove ? on.removeQueue(present) : on.updateQueue(present, change)));
            break;
          }
          default: {
            const at = { queue: q, exchange: x, key: `k${random(3)}`, arguments: "" };
            const present = on.binding(at.queue, at.exchange, at.key, at.arguments);
            const intervals = [{ from: random(99), queueId: 1, exchangeId: 1, kind: "topic" }] as const;
            const write = remove && present ? on.removeBinding(present) : on.writeBinding(at, intervals, present);
            confirm(`b.${q}.${x}.${at.key}`, await write);
          }
        }
      };
      for (let i = 0; i < 250; i++) {
        // Several at once from both: some write what the other has just changed.
        await Promise.all(Array.from({ length: 1 + random(3) }, step));
        if (i % 10 !== 0) continue;
        await Promise.all(replicas.map((replica) => replica.fence()));
        const queues = new Set([...replicas[0].queues()].map((queue) => queue.name));
        // Bindings are reached through their queues: those of a queue that is gone stand in the bucket unseen.
        const visible = [...model].filter(([key]) => !key.startsWith("b.") || queues.has(key.split(".")[1] ?? ""));
        for (const replica of replicas) expect(dump(replica)).toEqual(new Map(visible));
      }
      const third = await open();
      expect(dump(third)).toEqual(dump(replicas[0]));
      expect(conflicts).toBeGreaterThan(0);
      await Promise.all([...replicas, third].map((replica) => replica.close()));
    },
  );

  it("learn of each other's writes without a fence, and of an expiry", async () => {
    const lost = (error: Error): void => {
      throw error;
    };
    const bucket = await openBucket(await server.connect());
    const one = await Topology.open(bucket, { root: "amqp", lost });
    const two = await Topology.open(await openBucket(await server.connect()), { root: "amqp", lost });
    await one.createQueue("q", queueRecord());
    while (two.queue("q") === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    await bucket.refresh("r.dies", Buffer.from("{}"), 0, 1_000);
    while (!two.replicas().has("dies")) await new Promise((resolve) => setTimeout(resolve, 5));
    while (two.replicas().has("dies") || one.replicas().has("dies"))
      await new Promise((resolve) => setTimeout(resolve, 5));
    await Promise.all([one.close(), two.close()]);
  });
});
