import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Broker } from "../../src/core/broker.ts";
import type { Session } from "../../src/core/verbs.ts";
import { stored } from "../nats/stored.ts";
import { drain, exchangeSpec, openRig, publish, queueSpec, type Rig, Taker } from "./rig.ts";

let server: NatsServer;
let rig: Rig;
let broker: Broker;
let session: Session;

beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

beforeEach(async () => {
  rig = await openRig(server.url);
  broker = rig.broker;
  session = broker.openSession();
});
afterEach(async () => {
  for (const name of ["q", "r", "e1"]) await broker.deleteQueue(session, name, { ifUnused: false, ifEmpty: false });
  for (const name of ["x", "y"]) await broker.deleteExchange(name, { ifUnused: false });
  await rig.close();
});

const soon = async (check: () => unknown): Promise<void> => {
  await expect.poll(check, { timeout: 5000, interval: 20 }).toBeTruthy();
};
const kept = (): Promise<number> => stored(rig.bus);

describe("queues", () => {
  test("a declared queue takes what is published to its name, in order", async () => {
    expect(await broker.declareQueue(session, queueSpec("q"))).toEqual({ name: "q", messages: 0, consumers: 0 });
    for (const text of ["1", "2", "3"]) await publish(broker, "", "q", text);
    expect(await broker.checkQueue(session, "q")).toEqual({ name: "q", messages: 3, consumers: 0 });
    expect(await drain(broker, session, "q")).toEqual(["1", "2", "3"]);
    await soon(async () => (await kept()) === 0);
  });

  test("declaring again with other properties is 406 naming the first that differs; exclusiveness is 405 before it", async () => {
    await broker.declareQueue(session, queueSpec("q"));
    expect(await broker.declareQueue(session, queueSpec("q", { durable: false, autoDelete: true }))).toMatchObject({
      code: 406,
      text: "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'",
    });
    expect(await broker.declareQueue(session, queueSpec("q", { durable: false, exclusive: true }))).toMatchObject({
      code: 405,
    });
  });

  test("racing declares of one name: all see the same queue, or are told what differs", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => broker.declareQueue(session, queueSpec("q", { durable: n % 2 === 0 }))),
    );
    expect(answers.filter((answer) => "code" in answer)).toHaveLength(10);
  });

  test("deleting counts what was ready, is fine for the absent, and nothing stays in the log", async () => {
    await broker.declareQueue(session, queueSpec("q"));
    for (let n = 0; n < 50; n++) await publish(broker, "", "q", `${n}`);
    expect(await broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: true })).toMatchObject({ code: 406 });
    expect(await broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false })).toEqual({ messages: 50 });
    expect(await broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false })).toEqual({ messages: 0 });
    await soon(async () => (await kept()) === 0);
  });

  test("deletion cancels its consumers; a redeclared queue revives nothing", async () => {
    await broker.declareQueue(session, queueSpec("q"));
    const taker = await Taker.on(broker, session, "q", 1);
    await publish(broker, "", "q", "held");
    await publish(broker, "", "q", "ready");
    await soon(() => taker.deliveries.length === 1);
    await broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false });
    expect(taker.cancels).toBe(1);
    await broker.declareQueue(session, queueSpec("q"));
    taker.deliveries[0]?.settle("requeue");
    expect(await drain(broker, session, "q")).toEqual([]);
  });

  test("an exclusive queue is its session's: 405 for others, gone with it", async () => {
    const other = broker.openSession();
    await broker.declareQueue(session, queueSpec("e1", { exclusive: true }));
    expect(await broker.checkQueue(other, "e1")).toMatchObject({ code: 405 });
    expect(await broker.declareQueue(other, queueSpec("e1", { durable: false }))).toMatchObject({ code: 405 });
    await broker.closeSession(session);
    expect(await broker.checkQueue(other, "e1")).toMatchObject({ code: 404 });
  });

  test("an auto-delete queue goes with its LAST consumer, never before one came", async () => {
    await broker.declareQueue(session, queueSpec("q", { autoDelete: true }));
    const [one, two] = [await Taker.on(broker, session, "q"), await Taker.on(broker, session, "q")];
    await one.subscription?.cancel();
    expect(await broker.checkQueue(session, "q")).toMatchObject({ consumers: 1 });
    await two.subscription?.cancel();
    expect(await broker.checkQueue(session, "q")).toMatchObject({ code: 404 });
  });

  test("exclusive consumers: none beside them", async () => {
    await broker.declareQueue(session, queueSpec("q"));
    await Taker.on(broker, session, "q", 1, true);
    await expect(Taker.on(broker, session, "q")).rejects.toThrow("queue 'q' in vhost '/' in exclusive use");
  });
});

describe("bindings are intervals", () => {
  beforeEach(async () => {
    await broker.declareExchange(exchangeSpec("x", "topic"));
    await broker.declareQueue(session, queueSpec("q"));
  });
  const bind = (key: string, queue = "q", exchange = "x") =>
    broker.bind(session, [{ queue, exchange, key, arguments: "" }]);
  const unbind = (key: string, queue = "q", exchange = "x") =>
    broker.unbind(session, { queue, exchange, key, arguments: "" });

  test("a late binding takes nothing older; an unbinding leaves what is queued; a rebinding leaves the gap", async () => {
    await broker.declareQueue(session, queueSpec("r"));
    await bind("#", "r");
    await publish(broker, "x", "a", "before");
    expect(await bind("a")).toEqual({ done: 1, refusal: undefined });
    await publish(broker, "x", "a", "in");
    expect(await unbind("a")).toBeUndefined();
    await publish(broker, "x", "a", "gap");
    await bind("a");
    await publish(broker, "x", "a", "again");
    expect(await broker.checkQueue(session, "q")).toMatchObject({ messages: 2 });
    expect(await drain(broker, session, "q")).toEqual(["in", "again"]);
    expect(await drain(broker, session, "r")).toEqual(["before", "in", "gap", "again"]);
    await soon(async () => (await kept()) === 0);
  });

  test("held and nak'd messages survive unbinding, and the filter goes when they are done", async () => {
    await bind("a");
    await publish(broker, "x", "a", "1");
    await publish(broker, "x", "a", "2");
    const taker = await Taker.on(broker, session, "q", 2);
    await soon(() => taker.deliveries.length === 2);
    await taker.subscription?.cancel();
    await unbind("a");
    broker.requeue(taker.deliveries);
    expect(await drain(broker, session, "q")).toEqual(["1", "2"]);
    await soon(async () => (await rig.bus.cursorState("q"))?.filters.join() === "amqp._.q");
    await publish(broker, "x", "a", "nobody's");
    await soon(async () => (await kept()) === 0);
  });

  test("overlapping bindings give one copy; 40 binds at once all take, in few updates", async () => {
    await Promise.all(Array.from({ length: 40 }, (_, n) => bind(`k${n}.*`)));
    await bind("#");
    for (let n = 0; n < 40; n++) await publish(broker, "x", `k${n}.z`, `${n}`);
    expect(await drain(broker, session, "q")).toHaveLength(40);
  });

  test("deleting an exchange drops its bindings for good and keeps what they had queued", async () => {
    await bind("a");
    await publish(broker, "x", "a", "queued");
    expect(await broker.deleteExchange("x", { ifUnused: true })).toMatchObject({ code: 406 });
    expect(await broker.deleteExchange("x", { ifUnused: false })).toBeUndefined();
    expect(broker.route("x", "a")).toMatchObject({ code: 404 });
    await broker.declareExchange(exchangeSpec("x", "topic"));
    await publish(broker, "x", "a", "unbound");
    expect(await drain(broker, session, "q")).toEqual(["queued"]);
  });

  test("an auto-delete exchange goes with its last binding, also where the queue was deleted", async () => {
    for (const end of [
      () => unbind("a", "q", "y"),
      () => broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false }),
    ]) {
      await broker.declareQueue(session, queueSpec("q"));
      await broker.declareExchange(exchangeSpec("y", "direct", { autoDelete: true }));
      await bind("a", "q", "y");
      await end();
      await soon(async () => (await broker.checkExchange("y"))?.code === 404);
    }
  });

  test("refusals come in RabbitMQ's order: default exchange, exchange, queue, then what the bus cannot do", async () => {
    expect((await bind("k", "nobody", "")).refusal).toMatchObject({ code: 403 });
    expect((await bind("k", "nobody", "nowhere")).refusal).toMatchObject({
      text: "no exchange 'nowhere' in vhost '/'",
    });
    expect((await bind("a.#.b", "nobody")).refusal).toMatchObject({ text: "no queue 'nobody' in vhost '/'" });
    expect((await bind("a.#.b")).refusal).toMatchObject({ code: 540 });
    expect(await unbind("never")).toBeUndefined();
    const list = ["a", "#.a", "b"].map((key) => ({ queue: "q", exchange: "x", key, arguments: "" }));
    expect(await broker.bind(session, list)).toMatchObject({ done: 1, refusal: { code: 540 } });
    expect(broker.routable(broker.route("x", "b") as never)).toBe(false);
  });
});

describe("a bind that its exchange is deleted under", () => {
  test("came first: what was published by it stays queued, so the client is told that it was done", async () => {
    let deleting: Promise<unknown> = Promise.resolve();
    let isArmed = false;
    // The bind has its filters and not yet its record when the deletion looks for the bindings to close.
    const bus = <T extends object>(port: T): T =>
      new Proxy(port, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== "function") return member;
          if (name !== "lastSequence" || !isArmed) return member.bind(target);
          isArmed = false;
          return async () => {
            const sequence: unknown = await member.call(target);
            await publish(other.broker, "x", "k", "between");
            deleting = other.broker.deleteExchange("x", { ifUnused: false });
            await deleting;
            return sequence;
          };
        },
      });
    const other: Rig = await openRig(server.url, { bus });
    await rig.close();
    await soon(async () => (await other.broker.declareExchange(exchangeSpec("x", "direct"))) === undefined);
    const asker = other.broker.openSession();
    await other.broker.declareQueue(asker, queueSpec("q"));
    isArmed = true;
    const binding = { queue: "q", exchange: "x", key: "k", arguments: "" };
    expect(await other.broker.bind(asker, [binding])).toEqual({ done: 1, refusal: undefined });
    expect(await deleting).toBeUndefined();
    expect(await drain(other.broker, asker, "q")).toEqual(["between"]);
    // Declared again, it is bound to nothing.
    await other.broker.declareExchange(exchangeSpec("x", "direct"));
    await publish(other.broker, "x", "k", "later");
    expect(await drain(other.broker, asker, "q")).toEqual([]);
    rig = other;
    broker = other.broker;
    session = asker;
  });
});

describe("boot", () => {
  test("what is durable stays, what is not goes", async () => {
    await broker.declareExchange(exchangeSpec("x", "fanout"));
    await broker.declareExchange(exchangeSpec("y", "fanout", { durable: false }));
    await broker.declareQueue(session, queueSpec("q"));
    await broker.declareQueue(session, queueSpec("r", { durable: false }));
    await broker.declareQueue(session, queueSpec("e1", { exclusive: true }));
    await broker.bind(session, [{ queue: "q", exchange: "x", key: "", arguments: "" }]);
    await publish(broker, "x", "", "kept");
    await rig.drop();
    rig = await openRig(server.url);
    broker = rig.broker;
    session = broker.openSession();
    expect(await broker.checkExchange("y")).toMatchObject({ code: 404 });
    expect(await broker.checkQueue(session, "r")).toMatchObject({ code: 404 });
    expect(await broker.checkQueue(session, "e1")).toMatchObject({ code: 404 });
    expect(await drain(broker, session, "q")).toEqual(["kept"]);
    await publish(broker, "x", "", "more");
    expect(await drain(broker, session, "q")).toEqual(["more"]);
  }, 30_000);

  test("what a crash left held is there again at the next boot, flagged", async () => {
    await broker.declareQueue(session, queueSpec("q"));
    await publish(broker, "", "q", "held");
    const taker = await Taker.on(broker, session, "q");
    await soon(() => taker.deliveries.length === 1);
    await rig.drop();
    rig = await openRig(server.url);
    broker = rig.broker;
    const again = await Taker.on(broker, session, "q");
    await soon(() => again.deliveries.length === 1);
    expect(again.deliveries[0]?.redelivered).toBe(true);
    again.deliveries[0]?.settle("complete");
  }, 30_000);
});
