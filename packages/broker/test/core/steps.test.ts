/**
 * A leader that dies in the middle of a change leaves nothing half done once the next one leads: after each of its
 * writes, of each change, and again where the next one dies after the first write of its own. One that was only cut off
 * there, and goes on when another one leads, writes nothing more.
 */
import { describe, type ExpectStatic, test, vi } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Broker } from "../../src/core/broker.ts";
import type { Session } from "../../src/core/verbs.ts";
import { stored } from "../nats/stored.ts";
import { Mortality } from "./mortal.ts";
import { drain, exchangeSpec, openRig, publish, queueSpec, type Rig } from "./rig.ts";
import { eventually, NAMES, whole } from "./whole.ts";

// Most of the time of each is waiting for leases to end.
vi.setConfig({ maxConcurrency: 12 });

/** A replica, a session there, and the expectation of the test that runs: tests run beside each other. */
type At = readonly [Broker, Session, ExpectStatic];

interface Change {
  /** What stands before: declared by the one that dies. */
  before?(...at: At): Promise<void>;
  change(broker: Broker, session: Session): Promise<unknown>;
  /** What it writes, in this order, what is done behind the answer included: what a leader may die between. */
  readonly writes: readonly string[];
  /** What is answered to whoever repeats it at the next leader, whatever was done of it. */
  readonly again: unknown;
  /** What stands after: queues → their messages, in order; all of them consumed by this. */
  after(...at: At): Promise<void>;
}

const binding = (key: string, queue = "q", exchange = "x") => ({ queue, exchange, key, arguments: "" });
const unused = { ifUnused: false, ifEmpty: false };

/** x (topic) with q on k and l, r on everything; one message on each key in both. */
async function bound(broker: Broker, session: Session): Promise<void> {
  await broker.declareExchange(exchangeSpec("x", "topic"));
  for (const name of ["q", "r"]) await broker.declareQueue(session, queueSpec(name));
  await broker.bind(session, [binding("k"), binding("l"), binding("#", "r")]);
  for (const key of ["k", "l"]) await publish(broker, "x", key, `old ${key}`);
}

const CHANGES: Readonly<Record<string, Change>> = {
  "queue.declare": {
    change: (broker, session) => broker.declareQueue(session, queueSpec("q")),
    writes: ["create", "createCursor", "update"],
    again: { name: "q", messages: 0, consumers: 0 },
    after: async (broker, session, expect) => {
      expect(await broker.declareQueue(session, queueSpec("q", { durable: false }))).toMatchObject({ code: 406 });
      await publish(broker, "", "q", "new");
      expect(await drain(broker, session, "q")).toEqual(["new"]);
    },
  },
  "exchange.declare": {
    change: (broker) => broker.declareExchange(exchangeSpec("x", "topic")),
    writes: ["create"],
    again: undefined,
    after: async (broker, _, expect) => {
      expect(await broker.declareExchange(exchangeSpec("x", "direct"))).toMatchObject({ code: 406 });
    },
  },
  "queue.bind": {
    before: async (broker, session) => {
      await bound(broker, session);
      await publish(broker, "x", "m", "old m");
      await publish(broker, "x", "n", "old n");
    },
    change: (broker, session) => broker.bind(session, [binding("m"), binding("*"), binding("n.#")]),
    writes: ["updateCursor", "create", "create", "create"],
    again: { done: 3, refusal: undefined },
    after: async (broker, session, expect) => {
      for (const key of ["k", "m", "n", "n.o", "p.q"]) await publish(broker, "x", key, `new ${key}`);
      expect(await drain(broker, session, "q")).toEqual(["old k", "old l", "new k", "new m", "new n", "new n.o"]);
      expect(await drain(broker, session, "r")).toHaveLength(9);
    },
  },
  "queue.unbind": {
    before: bound,
    change: (broker, session) => broker.unbind(session, binding("k")),
    // Closing, and closed.
    writes: ["update", "update"],
    again: undefined,
    after: async (broker, session, expect) => {
      for (const key of ["k", "l"]) await publish(broker, "x", key, `new ${key}`);
      expect(await drain(broker, session, "q")).toEqual(["old k", "old l", "new l"]);
      expect(await drain(broker, session, "r")).toHaveLength(4);
    },
  },
  "queue.unbind from an empty queue, whose filter goes at once": {
    before: async (broker, session) => {
      await bound(broker, session);
      for (const name of ["q", "r"]) await drain(broker, session, name);
      // What was acknowledged is so on the bus once it is counted: the filter may go at once.
      await broker.checkQueue(session, "q");
    },
    change: (broker, session) => broker.unbind(session, binding("k")),
    writes: ["update", "update", "remove", "updateCursor"],
    again: undefined,
    after: async (broker, session, expect) => {
      for (const key of ["k", "l"]) await publish(broker, "x", key, `new ${key}`);
      expect(await drain(broker, session, "q")).toEqual(["new l"]);
      expect(await drain(broker, session, "r")).toHaveLength(2);
    },
  },
  "queue.unbind of the last binding of an auto-delete exchange": {
    before: async (broker, session) => {
      await bound(broker, session);
      await broker.declareExchange(exchangeSpec("y", "fanout", { autoDelete: true }));
      await broker.bind(session, [binding("", "q", "y")]);
      await publish(broker, "y", "", "old y");
    },
    change: (broker, session) => broker.unbind(session, binding("", "q", "y")),
    writes: ["update", "update", "update", "remove"],
    again: undefined,
    after: async (broker, session, expect) => {
      await eventually(expect, async () => (await broker.checkExchange("y"))?.code, 404);
      expect(await drain(broker, session, "q")).toEqual(["old k", "old l", "old y"]);
      expect(await drain(broker, session, "r")).toHaveLength(2);
    },
  },
  "exchange.delete": {
    before: bound,
    change: (broker) => broker.deleteExchange("x", { ifUnused: false }),
    writes: ["update", ...Array.from({ length: 6 }, () => "update"), "remove"],
    again: undefined,
    after: async (broker, session, expect) => {
      expect(await broker.checkExchange("x")).toMatchObject({ code: 404 });
      await broker.declareExchange(exchangeSpec("x", "topic"));
      await publish(broker, "x", "k", "new k");
      for (const name of ["q", "r"]) expect(await drain(broker, session, name)).toEqual(["old k", "old l"]);
    },
  },
  "queue.delete": {
    before: bound,
    change: (broker, session) => broker.deleteQueue(session, "q", unused),
    writes: ["update", "deleteCursor", "remove", "remove", "remove"],
    again: { messages: 0 },
    after: async (broker, session, expect) => {
      expect(await broker.checkQueue(session, "q")).toMatchObject({ code: 404 });
      await broker.declareQueue(session, queueSpec("q"));
      await publish(broker, "x", "k", "new k");
      await publish(broker, "", "q", "new");
      expect(await drain(broker, session, "q")).toEqual(["new"]);
      expect(await drain(broker, session, "r")).toEqual(["old k", "old l", "new k"]);
    },
  },
};

/** The longest that the topology may stand still, milliseconds. */
const STALL = 10_000;

/** The change with a leader that lives; resolves to its writes. */
async function writesOf({ before, change }: Change, expect: ExpectStatic): Promise<readonly string[]> {
  const server = await NatsServer.start();
  const mortality = new Mortality();
  const rig = await openRig(server.url, mortality);
  const session = rig.broker.openSession();
  await before?.(rig.broker, session, expect);
  mortality.arm();
  await change(rig.broker, session);
  await new Promise((resolve) => setTimeout(resolve, 700));
  const written = [...mortality.written];
  await rig.close();
  await server.stop();
  return written;
}

/** Resolves a moment after somebody leads, as this replica sees it: its chores have begun. */
async function idle({ broker }: Rig): Promise<void> {
  await broker.bind(broker.openSession(), []);
  await new Promise((resolve) => setTimeout(resolve, 500));
}

/** The change with leaders that die after so many writes, one after the other; then a last one looks after it. */
async function dying(
  { before, change, again, after }: Change,
  lives: readonly number[],
  expect: ExpectStatic,
): Promise<void> {
  const server = await NatsServer.start();
  const mortalities = lives.map(() => new Mortality());
  const rigs: Rig[] = [];
  for (const mortality of mortalities) rigs.push(await openRig(server.url, mortality));
  // The last of a line boots after them, so that it is the second one that takes over from the first.
  let heir = lives.length > 1 ? undefined : await openRig(server.url);
  try {
    const [leader] = rigs as [Rig];
    const session = leader.broker.openSession();
    await before?.(leader.broker, session, expect);
    for (const [index, mortality] of mortalities.entries()) mortality.arm(lives[index]);
    void change(leader.broker, session).catch(() => undefined);
    for (const [index, mortality] of mortalities.entries()) {
      const rig = rigs[index] as Rig;
      // One that finds nothing to write dies all the same, a little after it leads.
      await (index === 0 ? mortality.dead : Promise.race([mortality.dead, idle(rig)]));
      mortality.arm(0);
      await rig.drop();
    }
    heir ??= await openRig(server.url);
    const { broker, bus } = heir;
    const own = broker.openSession();
    const since = performance.now();
    expect(await change(broker, own)).toEqual(again);
    expect(performance.now() - since).toBeLessThan(STALL);
    await whole(server.url, heir, expect);
    await after(broker, own, expect);
    await eventually(expect, () => stored(bus), 0);
    await whole(server.url, heir, expect);
    for (const name of NAMES.queues) await broker.deleteQueue(own, name, unused);
    for (const name of NAMES.exchanges) await broker.deleteExchange(name, { ifUnused: false });
    expect(await bus.cursors()).toEqual([]);
    await whole(server.url, heir, expect);
  } finally {
    await heir?.close();
    await server.stop();
  }
}

/** The change with a leader that is cut off after so many writes until another one leads, and then goes on. */
async function cutOff({ before, change, again, after }: Change, writes: number, expect: ExpectStatic): Promise<void> {
  const server = await NatsServer.start();
  const mortality = new Mortality();
  const rigs = [await openRig(server.url, mortality), await openRig(server.url)];
  try {
    const [[leader, session], [heir, own]] = rigs.map(({ broker }) => [broker, broker.openSession()] as const) as [
      readonly [Broker, Session],
      readonly [Broker, Session],
    ];
    await before?.(leader, session, expect);
    mortality.arm(writes);
    const changed = change(leader, session);
    await mortality.dead;
    expect(await change(heir, own)).toEqual(again);
    mortality.revive();
    // What it had begun it asks of whoever leads now.
    await changed;
    expect(await change(leader, session)).toEqual(again);
    for (const { broker } of rigs) expect(await broker.checkExchange("none")).toMatchObject({ code: 404 });
    await whole(server.url, rigs[1] as Rig, expect);
    await after(leader, session, expect);
    await eventually(expect, async () => (rigs[1] === undefined ? undefined : await stored(rigs[1].bus)), 0);
    await whole(server.url, rigs[1] as Rig, expect);
  } finally {
    for (const rig of rigs) await rig.close();
    await server.stop();
  }
}

for (const [name, change] of Object.entries(CHANGES)) {
  describe.concurrent(name, () => {
    const { writes } = change;
    test(`writes ${writes.join(", ")}`, async ({ expect }) => {
      expect(await writesOf(change, expect)).toEqual(writes);
    });

    for (const [index, write] of writes.entries()) {
      test(`leader dead after ${write} (${index + 1})`, async ({ expect }) => {
        await dying(change, [index + 1], expect);
      });
      test(`leader cut off after ${write} (${index + 1})`, async ({ expect }) => {
        await cutOff(change, index + 1, expect);
      });
      test(`leader dead after ${write} (${index + 1}), the next one after its first write`, async ({ expect }) => {
        await dying(change, [index + 1, 1], expect);
      });
    }
  });
}
