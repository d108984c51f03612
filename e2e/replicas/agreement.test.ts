// What one replica has answered is so on every other: three gateway processes on one bus, real clients.
// design §4 (fence, barrier, one writer); HIP §6 as decided.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { releaseAll } from "../harness/owned.ts";
import { codeOf, drain, Fleet, publish, Taker, timeUntilGranted } from "./fleet.ts";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.start(3);
});
afterEach(async () => {
  await fleet.disconnect();
  const channel = await fleet.channel(0);
  for (const queue of ["q", "r"]) await channel.deleteQueue(queue);
  await channel.deleteExchange("x");
  await fleet.disconnect();
});
afterAll(releaseAll);

const REPLICAS = [0, 1, 2] as const;

describe("what one replica declares", () => {
  it("is at once there on the others: passive, bind, consume, mandatory publish; and at once gone", async () => {
    const channels = await Promise.all(REPLICAS.map((number) => fleet.confirms(number)));
    for (let round = 0; round < 12; round++) {
      const [a, b, c] = [0, 1, 2].map((n) => channels[(round + n) % 3]);
      if (a === undefined || b === undefined || c === undefined) throw new Error("three channels");
      await a.assertExchange("x", "topic");
      await b.checkExchange("x");
      await a.assertQueue("q");
      expect(await b.checkQueue("q")).toMatchObject({ queue: "q", consumerCount: 0 });
      expect(await publish(c, "", "q", `direct ${round}`)).toBe(true);
      await c.bindQueue("q", "x", "k.#");
      expect(await publish(a, "x", "k.1", `first ${round}`)).toBe(true);
      expect(await publish(b, "x", "k.2", `second ${round}`)).toBe(true);
      const taker = await Taker.on(b, "q", { each: (message) => b.ack(message) });
      await expect.poll(() => taker.texts).toEqual([`direct ${round}`, `first ${round}`, `second ${round}`]);
      await b.cancel(taker.tag);
      await c.deleteQueue("q");
      for (const channel of [a, b, c]) {
        expect(await publish(channel, "x", "k", `unroutable ${round}`)).toBe(false);
        expect(await publish(channel, "", "q", `absent ${round}`)).toBe(false);
      }
      await b.deleteExchange("x");
      for (const number of REPLICAS) expect(await codeOf((await fleet.channel(number)).checkExchange("x"))).toBe(404);
    }
  });

  it("in a race with other properties is declared by exactly one", async () => {
    for (let round = 0; round < 5; round++) {
      const channels = await Promise.all(REPLICAS.map((number) => fleet.channel(number)));
      const codes = await Promise.all(
        channels.map((channel, n) => codeOf(channel.assertQueue("q", { durable: n > 0, autoDelete: n > 1 }))),
      );
      expect(codes.sort()).toEqual([200, 406, 406]);
      await (await fleet.channel(round % 3)).deleteQueue("q");
    }
  });

  it("binds and unbinds of one queue from three replicas at once all take", async () => {
    const channels = await Promise.all(REPLICAS.map((number) => fleet.confirms(number)));
    const [first] = channels;
    if (first === undefined) throw new Error("three channels");
    await first.assertExchange("x", "topic");
    await first.assertQueue("q");
    const all = Array.from({ length: 60 }, (_, n) => n);
    const odd = all.filter((n) => n % 2 === 1);
    await Promise.all(all.map((n) => channels[n % 3]?.bindQueue("q", "x", `k${n}`)));
    await Promise.all(odd.map((n) => channels[(n + 1) % 3]?.unbindQueue("q", "x", `k${n}`)));
    for (const n of all) {
      const channel = channels[n % 3];
      if (channel !== undefined) expect(await publish(channel, "x", `k${n}`, `${n}`)).toBe(n % 2 === 0);
    }
    expect(await drain(first, "q")).toEqual(all.filter((n) => n % 2 === 0).map(String));
  });

  it("nothing published after a bind-ok misses the queue, nothing after an unbind-ok enters it", async () => {
    const channels = await Promise.all(REPLICAS.map((number) => fleet.confirms(number)));
    const [first] = channels;
    if (first === undefined) throw new Error("three channels");
    await first.assertExchange("x", "direct");
    await first.assertQueue("q");
    const got: string[] = [];
    for (const channel of channels)
      await Taker.on(channel, "q", {
        each: (message) => {
          got.push(message.content.toString());
          channel.ack(message);
        },
      });
    const expected: string[] = [];
    for (let round = 0; round < 30; round++) {
      await channels[round % 3]?.bindQueue("q", "x", "k");
      const routed = await Promise.all(channels.map((channel, n) => publish(channel, "x", "k", `in ${round} ${n}`)));
      expect(routed).toEqual([true, true, true]);
      for (const n of REPLICAS) expected.push(`in ${round} ${n}`);
      await channels[(round + 1) % 3]?.unbindQueue("q", "x", "k");
      const after = await Promise.all(channels.map((channel, n) => publish(channel, "x", "k", `out ${round} ${n}`)));
      expect(after).toEqual([false, false, false]);
    }
    await expect.poll(() => got.toSorted(), { timeout: 10_000 }).toEqual(expected.toSorted());
    // Nothing is under way any more: nobody holds a message, and none is ready.
    expect(await first.checkQueue("q")).toMatchObject({ messageCount: 0, consumerCount: 3 });
    expect(got.toSorted()).toEqual(expected.toSorted());
  });
});

describe("a queue of the fleet", () => {
  it("that is deleted on one replica has its consumers on the others cancelled", async () => {
    const channels = await Promise.all(REPLICAS.map((number) => fleet.channel(number)));
    await channels[0]?.assertQueue("q");
    const takers = await Promise.all(channels.map((channel) => Taker.on(channel, "q")));
    await channels[1]?.deleteQueue("q");
    await expect.poll(() => takers.map(({ cancelled }) => cancelled)).toEqual([1, 1, 1]);
  });

  it("counts consumers and ready messages of all replicas", async () => {
    const [a, b, c] = await Promise.all([fleet.confirms(0), fleet.channel(1), fleet.channel(2)]);
    await a.assertQueue("q");
    for (const channel of [a, b]) await channel.prefetch(1);
    const takers = [await Taker.on(a, "q"), await Taker.on(b, "q"), await Taker.on(b, "q")];
    for (let n = 0; n < 10; n++) await publish(a, "", "q", `${n}`);
    await expect.poll(() => takers.reduce((sum, { messages }) => sum + messages.length, 0)).toBe(3);
    for (const channel of [a, b, c])
      expect(await channel.checkQueue("q")).toEqual({ queue: "q", messageCount: 7, consumerCount: 3 });
    expect(await c.purgeQueue("q")).toEqual({ messageCount: 7 });
    expect(await codeOf((await fleet.channel(2)).deleteQueue("q", { ifUnused: true }))).toBe(406);
    expect(await c.deleteQueue("q")).toEqual({ messageCount: 0 });
  });

  it("auto-delete goes with the last consumer of the fleet, by cancel or by a dropped socket", async () => {
    const [a, b, c] = await Promise.all([fleet.channel(0), fleet.connect(1), fleet.channel(2)]);
    await c.assertQueue("q", { autoDelete: true });
    const one = await Taker.on(a, "q");
    await Taker.on(await b.createChannel(), "q");
    await a.cancel(one.tag);
    expect(await c.checkQueue("q")).toMatchObject({ consumerCount: 1 });
    fleet.drop(b);
    await expect.poll(async () => codeOf((await fleet.channel(2)).checkQueue("q")), { timeout: 3000 }).toBe(404);
  });
});

describe("exclusiveness", () => {
  it("holds across replicas, and ends within a second of its owner's socket", async () => {
    const owner = await fleet.connect(1);
    await (await owner.createChannel()).assertQueue("r", { exclusive: true });
    for (const number of [0, 2]) {
      expect(await codeOf((await fleet.channel(number)).checkQueue("r"))).toBe(405);
      expect(await codeOf((await fleet.channel(number)).assertQueue("r", { exclusive: true }))).toBe(405);
      expect(await codeOf((await fleet.channel(number)).deleteQueue("r"))).toBe(405);
    }
    fleet.drop(owner);
    const declare = async () => (await fleet.channel(2)).assertQueue("r", { exclusive: true });
    expect(await timeUntilGranted(declare, 5000)).toBeLessThan(1000);
  });

  it("of a consumer likewise", async () => {
    const owner = await fleet.connect(1);
    const channel = await owner.createChannel();
    await channel.assertQueue("q");
    await Taker.on(channel, "q", { exclusive: true });
    const consume = async (number: number, exclusive: boolean) =>
      Taker.on(await fleet.channel(number), "q", { exclusive });
    for (const number of [0, 2]) expect(await codeOf(consume(number, false))).toBe(403);
    fleet.drop(owner);
    expect(await timeUntilGranted(() => consume(2, false), 5000)).toBeLessThan(1000);
    expect(await codeOf(consume(0, true))).toBe(403);
    expect(await codeOf(consume(0, false))).toBe(200);
  });
});
