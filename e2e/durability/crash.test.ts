// Killed without a word: gateway and nats-server at once, or the gateway alone. Whatever was confirmed is there again,
// what was acknowledged is not, and what a dead client held comes back within the lease's few seconds. HIP §5; design §4
// (LEASE, SWEEP), §5. A power cut is another matter: the store's writes reach the kernel, not the disk.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll, temporaryFolder } from "../harness/owned.ts";
import { consumeAll, declare, embeddedPid, getOne, isAlive, numbered, openPublisher, publishAll } from "./load.ts";

afterAll(releaseAll);

async function killBoth(gateway: Gateway): Promise<void> {
  const bus = embeddedPid(gateway);
  process.kill(gateway.pid, "SIGKILL");
  process.kill(bus, "SIGKILL");
  await gateway.exited;
  await expect.poll(() => isAlive(bus)).toBe(false);
}

describe("after kill -9 of gateway and nats-server", () => {
  it("none of 5,000 confirmed messages is lost, and none acked over a second before comes back", async () => {
    const dataDir = temporaryFolder("amqp-crash");
    const first = await startGateway({ dataDir });
    const socket = await openPublisher(first);
    await declare(socket, "kept");
    await declare(socket, "worked");
    const texts = numbered("m", 5_000);
    await publishAll(socket, "worked", texts, { deliveryMode: 2 });
    const acked: string[] = [];
    for (let number = 0; number < 500; number++) {
      const got = await getOne(socket, "worked", false);
      if (got === undefined) throw new Error("a confirmed message is not there");
      socket.send(1, "basic.ack", { deliveryTag: got.tag });
      acked.push(got.text);
    }
    await publishAll(socket, "kept", texts, { deliveryMode: 2 });
    await sleep(1_200);
    await killBoth(first);
    socket.destroy();

    const second = await startGateway({ dataDir });
    expect((await consumeAll(second, "kept")).map(({ text }) => text)).toEqual(texts);
    const left = (await consumeAll(second, "worked")).map(({ text }) => text);
    expect(left.filter((text) => acked.includes(text))).toEqual([]);
    expect(left).toEqual(texts.slice(acked.length));
    await second.stop();
  }, 120_000);

  it("what was held or given back is there within ten seconds, flagged redelivered", async () => {
    const dataDir = temporaryFolder("amqp-crash");
    const first = await startGateway({ dataDir });
    const socket = await openPublisher(first);
    await declare(socket, "q");
    await publishAll(socket, "q", ["held", "given back", "ready"]);
    await getOne(socket, "q", false);
    const back = await getOne(socket, "q", false);
    socket.send(1, "basic.nack", { deliveryTag: back?.tag ?? 0n, requeue: true });
    await sleep(500);
    await killBoth(first);
    socket.destroy();

    const start = performance.now();
    const second = await startGateway({ dataDir });
    const got = await consumeAll(second, "q", 10_000 - (performance.now() - start));
    expect(got.map(({ text }) => text).sort(ascending)).toEqual(["given back", "held", "ready"]);
    for (const { text, redelivered } of got) if (text !== "ready") expect([text, redelivered]).toEqual([text, true]);
    await second.stop();
  }, 60_000);

  it("bindings, exchanges and queues stand, and an interrupted deletion revives nothing", async () => {
    const dataDir = temporaryFolder("amqp-crash");
    const first = await startGateway({ dataDir });
    const socket = await openPublisher(first);
    for (const queue of ["bound", "unbound", "deleted"]) await declare(socket, queue);
    socket.send(1, "exchange.declare", { exchange: "x", type: "topic", durable: true });
    await socket.expect("exchange.declare-ok");
    for (const queue of ["bound", "unbound", "deleted"]) {
      socket.send(1, "queue.bind", { queue, exchange: "x", routingKey: "a.#" });
      await socket.expect("queue.bind-ok");
    }
    socket.publish(1, { exchange: "x", routingKey: "a.b" }, "before");
    await socket.expect("basic.ack");
    socket.send(1, "queue.unbind", { queue: "unbound", exchange: "x", routingKey: "a.#" });
    await socket.expect("queue.unbind-ok");
    socket.send(1, "queue.delete", { queue: "deleted" });
    await socket.expect("queue.delete-ok");
    await killBoth(first);
    socket.destroy();

    const second = await startGateway({ dataDir });
    const again = await openPublisher(second);
    again.publish(1, { exchange: "x", routingKey: "a" }, "after");
    await again.expect("basic.ack");
    expect((await consumeAll(second, "bound")).map(({ text }) => text)).toEqual(["before", "after"]);
    expect((await consumeAll(second, "unbound")).map(({ text }) => text)).toEqual(["before"]);
    again.send(1, "queue.declare", { queue: "deleted", passive: true });
    expect((await again.expect("channel.close")).replyCode).toBe(404);
    again.destroy();
    await second.stop();
  }, 60_000);
});

describe("after kill -9 of the gateway alone", () => {
  it("the nats-server it left is no obstacle to the next boot, and nothing is lost", async () => {
    const dataDir = temporaryFolder("amqp-crash");
    const first = await startGateway({ dataDir });
    const socket = await openPublisher(first);
    await declare(socket, "q");
    const texts = numbered("m", 1_000);
    await publishAll(socket, "q", texts);
    for (let number = 0; number < 10; number++) await getOne(socket, "q", false);
    const left = embeddedPid(first);
    await first.kill("SIGKILL");
    socket.destroy();

    const start = performance.now();
    const second = await startGateway({ dataDir });
    const got = await consumeAll(second, "q", 10_000 - (performance.now() - start));
    expect(got.map(({ text }) => text).sort(ascending)).toEqual([...texts].sort(ascending));
    expect(got.filter(({ redelivered }) => redelivered).length).toBeGreaterThanOrEqual(10);
    const own = embeddedPid(second);
    await second.stop();
    expect([isAlive(left), isAlive(own)]).toEqual([false, false]);
  }, 60_000);

  it("its exclusive and transient queues are gone, and a durable one stays", async () => {
    const dataDir = temporaryFolder("amqp-crash");
    const first = await startGateway({ dataDir });
    const socket = await openPublisher(first);
    await declare(socket, "durable");
    await declare(socket, "transient", { durable: false });
    await declare(socket, "exclusive", { exclusive: true });
    socket.send(1, "exchange.declare", { exchange: "passing", type: "fanout" });
    await socket.expect("exchange.declare-ok");
    for (const queue of ["durable", "transient", "exclusive"]) await publishAll(socket, queue, ["1"]);
    await first.kill("SIGKILL");
    socket.destroy();

    const second = await startGateway({ dataDir });
    const again = await openPublisher(second);
    for (const queue of ["transient", "exclusive"]) {
      again.send(1, "queue.declare", { queue, passive: true });
      expect((await again.expect("channel.close")).replyCode).toBe(404);
      again.send(1, "channel.close-ok", {});
      await again.channel(1);
    }
    again.send(1, "exchange.declare", { exchange: "passing", type: "fanout", passive: true });
    expect((await again.expect("channel.close")).replyCode).toBe(404);
    again.destroy();
    expect((await consumeAll(second, "durable")).map(({ text }) => text)).toEqual(["1"]);
    await second.stop();
  }, 60_000);
});

function ascending(a: string, b: string): number {
  return a < b ? -1 : 1;
}
