/**
 * One replica's mirror is 50 ms late: no answer may show it. What was answered anywhere holds everywhere at once, and
 * what is published around a bind and an unbind is where AMQP puts it, whoever publishes, binds and consumes.
 */

import { LEADER_KEY, openBucket } from "@amqp/topology";
import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Broker } from "../../src/core/broker.ts";
import type { Delivery } from "../../src/core/message.ts";
import type { Session } from "../../src/core/verbs.ts";
import { NatsPeers } from "../../src/nats/peers.ts";
import { isRefusal } from "../../src/refusals.ts";
import { late } from "./late.ts";
import { drain, exchangeSpec, openRig, publish, queueSpec, type Rig, Taker } from "./rig.ts";

const LAG = 50;
let server: NatsServer;
beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

/** As Taker, acknowledging at once. */
class Drain extends Taker {
  readonly texts: string[] = [];

  override deliver(delivery: Delivery): void {
    this.texts.push(Buffer.from(delivery.body).toString());
    delivery.settle("complete");
  }
}

describe.each([
  ["the leader's", 0],
  ["a follower's", 1],
])("%s mirror is late", (_, lagging) => {
  let rigs: Rig[];
  const at = (n: number): [Broker, Session] => [brokers[n % 3] as Broker, sessions[n % 3] as Session];
  let brokers: Broker[];
  let sessions: Session[];

  beforeEach(async () => {
    rigs = [];
    for (let n = 0; n < 3; n++)
      rigs.push(await openRig(server.url, n === lagging ? { bucket: (bucket) => late(bucket, LAG) } : {}));
    brokers = rigs.map(({ broker }) => broker);
    sessions = brokers.map((broker) => broker.openSession());
  });
  afterEach(async () => {
    const [broker, session] = at(2);
    for (const name of ["q", "r"]) await broker.deleteQueue(session, name, { ifUnused: false, ifEmpty: false });
    await broker.deleteExchange("x", { ifUnused: false });
    for (const rig of rigs) await rig.close();
  });

  /** As a mandatory publish: unroutable only after a fence. */
  async function routable(broker: Broker, exchange: string, key: string): Promise<boolean> {
    const ask = (): boolean => {
      const route = broker.route(exchange, key);
      return !isRefusal(route) && broker.routable(route);
    };
    if (ask()) return true;
    await broker.fence();
    return ask();
  }

  test("what one declares, binds or deletes is so on every other at once", async () => {
    for (let round = 0; round < 9; round++) {
      const [a, sa] = at(round);
      const [b, sb] = at(round + 1);
      const [c, sc] = at(round + 2);
      expect(await a.declareExchange(exchangeSpec("x", "topic"))).toBeUndefined();
      expect(await b.checkExchange("x")).toBeUndefined();
      expect(await a.declareQueue(sa, queueSpec("q"))).toMatchObject({ name: "q" });
      expect(await b.checkQueue(sb, "q")).toMatchObject({ name: "q" });
      expect(await routable(c, "", "q")).toBe(true);
      expect(await c.bind(sc, [{ queue: "q", exchange: "x", key: "k", arguments: "" }])).toMatchObject({ done: 1 });
      expect(await routable(a, "x", "k")).toBe(true);
      expect(await routable(b, "x", "k")).toBe(true);
      await publish(b, "x", "k", "one");
      const taker = await Drain.on(c, sc, "q");
      await expect.poll(() => (taker as Drain).texts).toEqual(["one"]);
      await b.deleteQueue(sb, "q", { ifUnused: false, ifEmpty: false });
      for (const [broker, session] of [at(0), at(1), at(2)]) {
        expect(await broker.checkQueue(session, "q")).toMatchObject({ code: 404 });
        expect(await routable(broker, "x", "k")).toBe(false);
      }
      await c.deleteExchange("x", { ifUnused: false });
      for (const [broker] of [at(0), at(1), at(2)])
        expect(await broker.checkExchange("x")).toMatchObject({ code: 404 });
    }
  }, 60_000);

  test("nothing published after a bind-ok misses the queue, nothing after an unbind-ok enters it", async () => {
    const binding = { queue: "q", exchange: "x", key: "k", arguments: "" };
    const [a, sa] = at(0);
    await a.declareExchange(exchangeSpec("x", "topic"));
    for (const name of ["q", "r"]) await a.declareQueue(sa, queueSpec(name));
    // r has the same messages always: no difference may come from what else is bound.
    await a.bind(sa, [{ queue: "r", exchange: "x", key: "#", arguments: "" }]);
    const takers = await Promise.all(brokers.map((broker, n) => Drain.on(broker, sessions[n] as Session, "q")));
    const expected: string[] = [];
    for (let round = 0; round < 30; round++) {
      const [b, sb] = at(round);
      const [c, sc] = at(round + 1 + (round % 2));
      expect(await b.bind(sb, [binding])).toMatchObject({ done: 1 });
      await Promise.all(brokers.map((broker, n) => publish(broker, "x", "k", `in ${round} from ${n}`)));
      for (const n of brokers.keys()) expected.push(`in ${round} from ${n}`);
      expect(await c.unbind(sc, binding)).toBeUndefined();
      await Promise.all(brokers.map((broker, n) => publish(broker, "x", "k", `out ${round} from ${n}`)));
    }
    const got = (): string[] => takers.flatMap((taker) => (taker as Drain).texts).sort();
    await expect.poll(got, { timeout: 10_000 }).toEqual(expected.sort());
    for (const [n, taker] of takers.entries()) {
      await taker.subscription?.cancel();
      expect(await drain(...at(n), "q")).toEqual([]);
    }
    expect(got()).toEqual(expected.sort());
    expect(await drain(...at(1), "r")).toHaveLength(180);
  }, 60_000);
});

test("a sweep spares what a replica holds that the leader's mirror has not seen yet", async () => {
  const leader = await openRig(server.url, { bucket: (bucket) => late(bucket, 1_500) });
  const session = leader.broker.openSession();
  await leader.broker.declareQueue(session, queueSpec("q"));
  for (let n = 0; n < 5; n++) await publish(leader.broker, "", "q", `${n}`);
  const fresh = await openRig(server.url);
  const taker = await Taker.on(fresh.broker, fresh.broker.openSession(), "q", 5);
  const connection = await connect({ servers: server.url });
  const { value } = await (await openBucket(connection)).read(LEADER_KEY);
  const { replica } = JSON.parse(Buffer.from(value ?? []).toString()) as { replica: string };
  await expect.poll(() => taker.deliveries.length).toBe(5);
  await new NatsPeers(connection, "amqp").ask(replica, "lead.sweep", { queue: "q" }, 10_000);
  expect(await drain(leader.broker, session, "q")).toEqual([]);
  for (const delivery of taker.deliveries) delivery.settle("complete");
  await leader.broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false });
  await connection.close();
  for (const rig of [fresh, leader]) await rig.close();
}, 60_000);
