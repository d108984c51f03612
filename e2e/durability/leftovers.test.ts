// Nothing is kept that no queue wants, however large the backlog was: JetStream itself forgets messages for ever when a
// consumer with more than 100,000 sequences behind it goes or is narrowed (design §5, LEAK). 200,000 each way.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { untilStreamEmpty } from "../crosswire/bus.ts";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import type { AmqpSocket } from "../harness/socket.ts";
import { openPublisher } from "./load.ts";

const BACKLOG = Number(process.env.AMQP_BACKLOG ?? 200_000);

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(releaseAll);

/** Two queues bound to one fanout, and the backlog in both. */
async function fill(socket: AmqpSocket, exchange: string, queues: readonly string[]): Promise<void> {
  socket.send(1, "exchange.declare", { exchange, type: "fanout", durable: true });
  await socket.expect("exchange.declare-ok");
  for (const queue of queues) {
    socket.send(1, "queue.declare", { queue, durable: true });
    await socket.expect("queue.declare-ok");
    socket.send(1, "queue.bind", { queue, exchange });
    await socket.expect("queue.bind-ok");
  }
  const body = Buffer.from("x");
  for (let sent = 0; sent < BACKLOG; sent += 2_000) {
    for (let one = 0; one < 2_000; one++) socket.publish(1, { exchange, routingKey: "k" }, body);
    for (let one = 0; one < 2_000; one++) await socket.expect("basic.ack", 30_000);
  }
}

async function count(socket: AmqpSocket, queue: string): Promise<number> {
  socket.send(1, "queue.declare", { queue, durable: true, passive: true });
  return (await socket.expect("queue.declare-ok", 30_000)).messageCount;
}

describe(`a backlog of ${BACKLOG.toLocaleString("en")}`, () => {
  it("is gone with its queues, one deleted beside a publisher that goes on", async () => {
    const socket = await openPublisher(gateway);
    await fill(socket, "x", ["a", "b"]);
    expect([await count(socket, "a"), await count(socket, "b")]).toEqual([BACKLOG, BACKLOG]);
    const other = await openPublisher(gateway);
    other.send(1, "queue.delete", { queue: "a" });
    for (let one = 0; one < 5_000; one++) socket.publish(1, { exchange: "x" }, "meanwhile");
    expect((await other.expect("queue.delete-ok", 30_000)).messageCount).toBeGreaterThanOrEqual(BACKLOG);
    for (let one = 0; one < 5_000; one++) await socket.expect("basic.ack", 30_000);
    socket.send(1, "queue.delete", { queue: "b" });
    expect((await socket.expect("queue.delete-ok", 30_000)).messageCount).toBe(BACKLOG + 5_000);
    await untilStreamEmpty(gateway.natsUrl, 90_000);
    // Both names are free at once, and empty.
    socket.send(1, "queue.declare", { queue: "a", durable: true });
    expect((await socket.expect("queue.declare-ok", 30_000)).messageCount).toBe(0);
    for (const each of [socket, other]) each.destroy();
  }, 300_000);

  it("unbound and then consumed leaves nothing", async () => {
    const socket = await openPublisher(gateway);
    await fill(socket, "y", ["c"]);
    socket.send(1, "queue.unbind", { queue: "c", exchange: "y" });
    await socket.expect("queue.unbind-ok");
    for (let one = 0; one < 1_000; one++) socket.publish(1, { exchange: "y" }, "for nobody");
    for (let one = 0; one < 1_000; one++) await socket.expect("basic.ack", 30_000);
    socket.send(1, "basic.consume", { queue: "c", consumerTag: "t", noAck: true });
    await socket.expect("basic.consume-ok");
    for (let got = 0; got < BACKLOG; got++) {
      await socket.expect("basic.deliver", 30_000);
      expect((await socket.expectContent()).body.toString()).toBe("x");
    }
    expect(await socket.collect(300)).toEqual([]);
    await untilStreamEmpty(gateway.natsUrl, 60_000);
    socket.destroy();
  }, 300_000);

  it("purged leaves nothing", async () => {
    const socket = await openPublisher(gateway);
    await fill(socket, "z", ["d"]);
    socket.send(1, "queue.purge", { queue: "d" });
    expect((await socket.expect("queue.purge-ok", 120_000)).messageCount).toBe(BACKLOG);
    await untilStreamEmpty(gateway.natsUrl, 60_000);
    socket.destroy();
  }, 300_000);
});
