// Nothing is kept that no queue wants, however large the backlog was: JetStream itself forgets messages for ever when a
// consumer with more than 100,000 sequences behind it goes or is narrowed (design §5, LEAK). 200,000 each way.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { untilStreamEmpty } from "../crosswire/bus.ts";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import type { AmqpSocket } from "../harness/socket.ts";
import { openPublisher } from "./load.ts";

const BACKLOG = Number(process.env.AMQP_BACKLOG ?? 200_000);

const QUEUES = ["deleted", "deleted beside a publisher", "unbound", "purged"].map((name) => name.replaceAll(" ", "-"));
const [DELETED = "", BESIDE = "", UNBOUND = "", PURGED = ""] = QUEUES;

let gateway: Gateway;
let socket: AmqpSocket;

/** Four queues bound to one fanout, and the backlog in each. */
beforeAll(async () => {
  gateway = await startGateway();
  socket = await openPublisher(gateway);
  socket.send(1, "exchange.declare", { exchange: "x", type: "fanout", durable: true });
  await socket.expect("exchange.declare-ok");
  for (const queue of QUEUES) {
    socket.send(1, "queue.declare", { queue, durable: true });
    await socket.expect("queue.declare-ok");
    socket.send(1, "queue.bind", { queue, exchange: "x" });
    await socket.expect("queue.bind-ok");
  }
  for (let sent = 0; sent < BACKLOG; sent += 2_000) await publish(socket, 2_000, "x");
}, 180_000);
afterAll(releaseAll);

async function publish(from: AmqpSocket, times: number, body: string): Promise<void> {
  for (let one = 0; one < times; one++) from.publish(1, { exchange: "x", routingKey: "k" }, body);
  for (let one = 0; one < times; one++) await from.expect("basic.ack", 30_000);
}

async function count(queue: string): Promise<number> {
  socket.send(1, "queue.declare", { queue, durable: true });
  return (await socket.expect("queue.declare-ok", 90_000)).messageCount;
}

describe(`a backlog of ${BACKLOG.toLocaleString("en")}`, () => {
  it("is counted exactly", async () => {
    for (const queue of QUEUES) expect(await count(queue)).toBe(BACKLOG);
  }, 60_000);

  it("unbound stays, takes no more, and is consumed to its last message", async () => {
    socket.send(1, "queue.unbind", { queue: UNBOUND, exchange: "x" });
    await socket.expect("queue.unbind-ok");
    await publish(socket, 1_000, "not for the unbound one");
    socket.send(1, "basic.consume", { queue: UNBOUND, consumerTag: "t", noAck: true });
    await socket.expect("basic.consume-ok");
    for (let got = 0; got < BACKLOG; got++) {
      await socket.expect("basic.deliver", 30_000);
      expect((await socket.expectContent()).body.toString()).toBe("x");
    }
    expect(await socket.collect(300)).toEqual([]);
  }, 180_000);

  it("is gone with its queue, beside a publisher that goes on, and the name is free", async () => {
    const publisher = await openPublisher(gateway);
    socket.send(1, "queue.delete", { queue: BESIDE });
    await publish(publisher, 5_000, "meanwhile");
    expect((await socket.expect("queue.delete-ok", 90_000)).messageCount).toBeGreaterThanOrEqual(BACKLOG + 1_000);
    expect(await count(BESIDE)).toBe(0);
    publisher.destroy();
  }, 120_000);

  it("is purged", async () => {
    socket.send(1, "queue.purge", { queue: PURGED });
    expect((await socket.expect("queue.purge-ok", 120_000)).messageCount).toBe(BACKLOG + 6_000);
    expect(await count(PURGED)).toBe(0);
  }, 150_000);

  it("and then the last queue that held it is deleted: the stream is empty", async () => {
    socket.send(1, "queue.delete", { queue: DELETED });
    expect((await socket.expect("queue.delete-ok", 90_000)).messageCount).toBe(BACKLOG + 6_000);
    await untilStreamEmpty(gateway.natsUrl, 90_000);
    socket.destroy();
  }, 150_000);
});
