/** Several replicas on one bus must look like one broker. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Broker } from "../../src/core/broker.ts";
import type { Session } from "../../src/core/verbs.ts";
import { stored } from "../nats/stored.ts";
import { drain, exchangeSpec, openRig, publish, queueSpec, type Rig, Taker } from "./rig.ts";

let server: NatsServer;
let rigs: Rig[];
let brokers: Broker[];
let sessions: Session[];

beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

beforeEach(async () => {
  rigs = [];
  for (let n = 0; n < 3; n++) rigs.push(await openRig(server.url));
  brokers = rigs.map(({ broker }) => broker);
  sessions = brokers.map((broker) => broker.openSession());
});
afterEach(async () => {
  const [broker] = brokers.slice(-1) as [Broker];
  const [session] = sessions.slice(-1) as [Session];
  for (const name of ["q", "r", "e1"]) await broker.deleteQueue(session, name, { ifUnused: false, ifEmpty: false });
  for (const name of ["x", "y"]) await broker.deleteExchange(name, { ifUnused: false });
  for (const rig of rigs) await rig.close();
});

const at = (n: number): [Broker, Session] => [brokers[n] as Broker, sessions[n] as Session];
const soon = async (check: () => unknown, timeout = 5000): Promise<void> => {
  await expect.poll(check, { timeout, interval: 20 }).toBeTruthy();
};

/** As kill -9 of that replica. */
async function crash(n: number): Promise<void> {
  await rigs[n]?.drop();
  rigs.splice(n, 1);
  brokers.splice(n, 1);
  sessions.splice(n, 1);
}

describe("agreement", () => {
  test("declared on one, at once usable on the others: never a false 404 or 312", async () => {
    const [a, sa] = at(0);
    for (let round = 0; round < 30; round++) {
      await a.declareExchange(exchangeSpec("x", "topic"));
      await a.declareQueue(sa, queueSpec("q"));
      await a.bind(sa, [{ queue: "q", exchange: "x", key: "k", arguments: "" }]);
      for (const n of [1, 2]) {
        const [b, sb] = at(n);
        await b.fence();
        const route = b.route("x", "k");
        expect("code" in route ? route.text : b.routable(route)).toBe(true);
        expect(await b.checkQueue(sb, "q")).toMatchObject({ name: "q" });
        expect(await b.checkExchange("x")).toBeUndefined();
      }
      await a.deleteQueue(sa, "q", { ifUnused: false, ifEmpty: false });
      await a.deleteExchange("x", { ifUnused: false });
    }
  });

  test("racing declares of one name with different properties: exactly one wins", async () => {
    const answers = await Promise.all(
      brokers.map((broker, n) =>
        broker.declareQueue(sessions[n] as Session, queueSpec("q", { durable: n > 0, autoDelete: n > 1 })),
      ),
    );
    expect(answers.filter((answer) => "code" in answer)).toHaveLength(2);
  });

  test("binds and unbinds of one queue from three replicas at once all take", async () => {
    const [a, sa] = at(0);
    await a.declareExchange(exchangeSpec("x", "topic"));
    await a.declareQueue(sa, queueSpec("q"));
    const all = Array.from({ length: 60 }, (_, n) => n);
    const binding = (n: number) => ({ queue: "q", exchange: "x", key: `k${n}`, arguments: "" });
    await Promise.all(all.map((n) => brokers[n % 3]?.bind(sessions[n % 3] as Session, [binding(n)])));
    const odd = all.filter((n) => n % 2 === 1);
    await Promise.all(odd.map((n) => brokers[(n + 1) % 3]?.unbind(sessions[(n + 1) % 3] as Session, binding(n))));
    for (const n of all) await publish(brokers[n % 3] as Broker, "x", `k${n}`, `${n}`);
    expect(await drain(...at(2), "q")).toEqual(all.filter((n) => n % 2 === 0).map(String));
  });

  test("nothing published after a bind-ok misses the queue, nothing published after an unbind-ok enters it", async () => {
    const [a, sa] = at(0);
    const binding = { queue: "q", exchange: "x", key: "k", arguments: "" };
    await a.declareExchange(exchangeSpec("x", "direct"));
    await a.declareQueue(sa, queueSpec("q"));
    const expected: string[] = [];
    for (let round = 0; round < 40; round++) {
      const [b, sb] = at(round % 3);
      const [c] = at((round + 1) % 3);
      expect(await b.bind(sb, [binding])).toMatchObject({ done: 1 });
      await publish(c, "x", "k", `in ${round}`);
      expected.push(`in ${round}`);
      expect(await b.unbind(sb, binding)).toBeUndefined();
      await publish(c, "x", "k", `out ${round}`);
    }
    expect(await drain(...at(1), "q")).toEqual(expected);
  });
});

describe("one broker's queues", () => {
  test("deleted on one, its consumers on another are cancelled; counts are the fleet's", async () => {
    const [a, sa] = at(0);
    const [b, sb] = at(1);
    await a.declareQueue(sa, queueSpec("q"));
    const takers = [await Taker.on(a, sa, "q", 1), await Taker.on(b, sb, "q", 1)];
    for (let n = 0; n < 5; n++) await publish(a, "", "q", `${n}`);
    await soon(() => takers.every(({ deliveries }) => deliveries.length === 1));
    for (const n of [0, 1, 2])
      expect(await brokers[n]?.checkQueue(sessions[n] as Session, "q")).toEqual({
        name: "q",
        messages: 3,
        consumers: 2,
      });
    expect(await at(2)[0].deleteQueue(at(2)[1], "q", { ifUnused: true, ifEmpty: false })).toMatchObject({ code: 406 });
    expect(await at(2)[0].deleteQueue(at(2)[1], "q", { ifUnused: false, ifEmpty: false })).toEqual({ messages: 3 });
    await soon(() => takers.every(({ cancels }) => cancels === 1));
  });

  test("exclusive queues and exclusive consumers hold across replicas", async () => {
    const [a, sa] = at(0);
    const [b, sb] = at(1);
    await b.declareQueue(sb, queueSpec("e1", { exclusive: true }));
    expect(await a.checkQueue(sa, "e1")).toMatchObject({ code: 405 });
    await b.closeSession(sb);
    expect(await a.checkQueue(sa, "e1")).toMatchObject({ code: 404 });
    await a.declareQueue(sa, queueSpec("q"));
    const alone = await Taker.on(b, sb, "q", 1, true);
    await expect(Taker.on(a, sa, "q")).rejects.toThrow("in exclusive use");
    await alone.subscription?.cancel();
    const shared = await Taker.on(a, sa, "q");
    await expect(Taker.on(b, sb, "q", 1, true)).rejects.toThrow("in exclusive use");
    await shared.subscription?.cancel();
  });

  test("an auto-delete queue goes with the last consumer of the fleet", async () => {
    const [a, sa] = at(0);
    const [b, sb] = at(1);
    await a.declareQueue(sa, queueSpec("q", { autoDelete: true }));
    const one = await Taker.on(a, sa, "q");
    const two = await Taker.on(b, sb, "q");
    await one.subscription?.cancel();
    expect(await a.checkQueue(sa, "q")).toMatchObject({ consumers: 1 });
    await two.subscription?.cancel();
    expect(await a.checkQueue(sa, "q")).toMatchObject({ code: 404 });
  });
});

describe("a replica dies", () => {
  for (const [role, victim] of [
    ["the leader", 0],
    ["a follower", 1],
  ] as const) {
    test(`${role}: what it held is redelivered, its exclusive queues go, the others go on`, async () => {
      const [dead, dying] = at(victim);
      const [live, session] = at(2);
      await live.declareQueue(session, queueSpec("q"));
      await dead.declareQueue(dying, queueSpec("e1", { exclusive: true }));
      await dead.declareQueue(dying, queueSpec("r", { autoDelete: true }));
      await Taker.on(dead, dying, "r");
      const lost = await Taker.on(dead, dying, "q", 10);
      for (let n = 0; n < 10; n++) await publish(live, "", "q", `${n}`);
      await soon(() => lost.deliveries.length === 10);
      lost.deliveries[0]?.settle("complete");
      // What a turn settles leaves at its end.
      await new Promise((resolve) => setTimeout(resolve, 20));
      await crash(victim);
      const taker = await Taker.on(live, session, "q", 100);
      await soon(() => taker.deliveries.length >= 9, 15_000);
      expect(taker.deliveries.map(({ body }) => Buffer.from(body).toString())).toEqual([
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
      ]);
      expect(taker.deliveries.every(({ redelivered }) => redelivered)).toBe(true);
      for (const delivery of taker.deliveries) delivery.settle("complete");
      await soon(async () => ((await live.checkQueue(session, "e1")) as { code?: number }).code === 404, 15_000);
      await soon(async () => ((await live.checkQueue(session, "r")) as { code?: number }).code === 404, 15_000);
      expect(await live.declareExchange(exchangeSpec("x", "topic"))).toBeUndefined();
    }, 40_000);
  }

  test("what the living hold is spared by the sweep", async () => {
    const [a, sa] = at(2);
    await a.declareQueue(sa, queueSpec("q"));
    for (let n = 0; n < 4; n++) await publish(a, "", "q", `${n}`);
    const mine = await Taker.on(a, sa, "q", 2);
    await soon(() => mine.deliveries.length === 2);
    const lost = await Taker.on(...at(1), "q", 2);
    await soon(() => lost.deliveries.length === 2);
    await crash(1);
    const third = await Taker.on(...at(0), "q", 10);
    await soon(() => third.deliveries.length === 2, 15_000);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(mine.deliveries).toHaveLength(2);
    expect(third.deliveries.map(({ body }) => Buffer.from(body).toString())).toEqual(["2", "3"]);
    for (const delivery of [...mine.deliveries, ...third.deliveries]) delivery.settle("complete");
    await soon(async () => rigs[0] !== undefined && (await stored(rigs[0].bus)) === 0);
  }, 40_000);
});

describe("a replica whose lease lapsed", () => {
  test("does not vouch for what it has seen of the topology until it is waited for again", async () => {
    let isCut = false;
    const frozen: Rig = await openRig(server.url, {
      bucket: (bucket) =>
        new Proxy(bucket, {
          get: (target, name) => {
            const member: unknown = Reflect.get(target, name, target);
            if (typeof member !== "function") return member;
            if (name !== "refresh") return member.bind(target);
            return async (...given: unknown[]) => {
              if (isCut) throw new Error("no answer");
              return member.apply(target, given);
            };
          },
        }),
    });
    rigs.push(frozen);
    expect(frozen.broker.isCurrent).toBe(true);
    isCut = true;
    await soon(() => !frozen.broker.isCurrent);
    isCut = false;
    await soon(() => frozen.broker.isCurrent, 10_000);
  });
});

describe("a replica that dies with the bus", () => {
  test("has told nobody what it delivered last: whoever delivers it again flags it", async () => {
    const [a, sa] = at(0);
    await a.declareQueue(sa, queueSpec("q"));
    const dead = await Taker.on(...at(2), "q");
    // One after the other and then at once: the bus writes down what it gave out first, and not yet what followed.
    for (let n = 1; n <= 20; n++) {
      await publish(a, "", "q", `${n}`);
      while (dead.deliveries.length < n) await new Promise((resolve) => setImmediate(resolve));
    }
    await server.kill();
    await crash(2);
    await server.restart(500);
    const [b, sb] = at(1);
    // Its lease has to end first, and whoever else lost one in the meantime comes back.
    await new Promise((resolve) => setTimeout(resolve, 9_000));
    const taker = await Taker.on(b, sb, "q");
    await soon(() => taker.deliveries.length === 20, 10_000);
    expect(taker.deliveries.filter(({ redelivered }) => !redelivered)).toEqual([]);
    for (const delivery of taker.deliveries) delivery.settle("complete");
  }, 60_000);
});
