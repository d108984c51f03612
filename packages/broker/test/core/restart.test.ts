/** The bus restarts and forgets what it gave out last: whoever takes it again must be told that it is not the first. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Broker } from "../../src/core/broker.ts";
import type { Delivery } from "../../src/core/message.ts";
import type { Session } from "../../src/core/verbs.ts";
import { before } from "./before.ts";
import { openRig, publish, queueSpec, type Rig, Taker } from "./rig.ts";

const MESSAGES = 20;

let server: NatsServer;
let rigs: Rig[];

beforeEach(async () => {
  server = await NatsServer.start();
  // The leader takes its time to learn who was given what.
  const slow = await openRig(server.url, {
    bus: (bus) => before(bus, "cursorState", () => new Promise((resolve) => setTimeout(resolve, 700))),
  });
  rigs = [slow, await openRig(server.url), await openRig(server.url)];
});
afterEach(async () => {
  for (const rig of rigs) await rig.drop();
  await server.stop();
});

/** Delivers at one replica, whose client has no room for more; the last of it the bus has forgotten after this. */
async function deliverAndCrash(touched: boolean): Promise<[Broker, Session]> {
  const [, giver, other] = rigs.map(({ broker }) => broker) as [Broker, Broker, Broker];
  const [given, asking] = [giver.openSession(), other.openSession()];
  await giver.declareQueue(given, queueSpec("q"));
  if (touched) await other.checkQueue(asking, "q");
  const taker = await Taker.on(giver, given, "q", MESSAGES);
  for (let n = 1; n <= MESSAGES; n++) {
    await publish(giver, "", "q", `${n}`);
    while (taker.deliveries.length < n) await new Promise((resolve) => setImmediate(resolve));
  }
  await server.restart();
  return [other, asking];
}

async function getAll(broker: Broker, session: Session): Promise<Delivery[]> {
  const got: Delivery[] = [];
  for (;;) {
    const answer = await broker.get(session, "q", { acknowledge: false });
    if ("code" in answer) throw new Error(answer.text);
    if (answer.delivery === undefined) return got;
    got.push(answer.delivery);
  }
}

const unflagged = (all: readonly Delivery[]): number => all.filter(({ redelivered }) => !redelivered).length;

test.each([
  ["basic.get where others had delivered waits until it is known what", true],
  ["so does whoever touches a queue for the first time only then", false],
])(
  "%s",
  async (_, touched) => {
    const [other, session] = await deliverAndCrash(touched);
    const got = await getAll(other, session);
    expect(got.length).toBeGreaterThan(0);
    expect(unflagged(got)).toBe(0);
  },
  30_000,
);
