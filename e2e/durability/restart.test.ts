// Stopped in order: SIGTERM closes every connection with a reason and hands back what it held, and the next boot sees
// all of it at once, unflagged where no client ever saw it. HIP §5; design §4, §6.
import { afterAll, describe, expect, it } from "vitest";
import { startGateway } from "../harness/gateway.ts";
import { releaseAll, temporaryFolder } from "../harness/owned.ts";
import { AmqpSocket } from "../harness/socket.ts";
import {
  addressOf,
  consumeAll,
  declare,
  embeddedPid,
  getOne,
  isAlive,
  numbered,
  openPublisher,
  publishAll,
} from "./load.ts";

afterAll(releaseAll);

describe("SIGTERM", () => {
  it("closes connections with 320, exits with 0 and leaves no nats-server", async () => {
    const gateway = await startGateway();
    const bus = embeddedPid(gateway);
    const socket = await openPublisher(gateway);
    const exit = gateway.kill("SIGTERM");
    const close = await socket.expect("connection.close");
    expect(close).toMatchObject({ replyCode: 320, classId: 0, methodId: 0 });
    expect(close.replyText).toMatch(/^CONNECTION_FORCED - /);
    socket.send(0, "connection.close-ok", {});
    await socket.expectClosed();
    expect(await exit).toEqual({ code: 0, signal: null });
    expect(isAlive(bus)).toBe(false);
  }, 60_000);

  it("ends although a client does not answer", async () => {
    const gateway = await startGateway();
    const socket = await openPublisher(gateway);
    expect(await gateway.kill("SIGTERM")).toEqual({ code: 0, signal: null });
    socket.destroy();
  }, 60_000);

  it("requeues at once: the next boot has everything, flagged only where a client has seen it", async () => {
    const dataDir = temporaryFolder("amqp-restart");
    const first = await startGateway({ dataDir });
    const socket = await openPublisher(first);
    await declare(socket, "q");
    await publishAll(socket, "q", numbered("m", 200));
    const seen: string[] = [];
    for (let number = 0; number < 5; number++) seen.push((await getOne(socket, "q", false))?.text ?? "");
    await first.kill("SIGTERM");
    socket.destroy();

    const second = await startGateway({ dataDir });
    const again = await openPublisher(second);
    again.send(1, "queue.declare", { queue: "q", durable: true, passive: true });
    expect((await again.expect("queue.declare-ok")).messageCount).toBe(200);
    again.destroy();
    const got = await consumeAll(second, "q");
    expect(got.map(({ text }) => text)).toEqual(numbered("m", 200));
    expect(got.filter(({ redelivered }) => redelivered).map(({ text }) => text)).toEqual(seen);
    await second.stop();
  }, 60_000);

  it("under a consumer that reads slowly loses nothing and flags only what went to its socket", async () => {
    const dataDir = temporaryFolder("amqp-restart");
    const first = await startGateway({ dataDir });
    const socket = await openPublisher(first);
    await declare(socket, "q");
    await publishAll(socket, "q", numbered("m", 500));
    const consumer = await AmqpSocket.open(addressOf(first));
    await consumer.channel(1);
    consumer.send(1, "basic.qos", { prefetchCount: 20 });
    await consumer.expect("basic.qos-ok");
    consumer.send(1, "basic.consume", { queue: "q", consumerTag: "t" });
    await consumer.expect("basic.consume-ok");
    const seen: string[] = [];
    for (let number = 0; number < 20; number++) {
      await consumer.expect("basic.deliver");
      seen.push((await consumer.expectContent()).body.toString());
    }
    await first.kill("SIGTERM");
    for (const each of [socket, consumer]) each.destroy();

    const second = await startGateway({ dataDir });
    const got = await consumeAll(second, "q");
    expect(got.map(({ text }) => text)).toEqual(numbered("m", 500));
    expect(got.filter(({ redelivered }) => redelivered).map(({ text }) => text)).toEqual(seen);
    await second.stop();
  }, 60_000);
});

describe("ten restarts in a row", () => {
  it("add nothing and lose nothing", async () => {
    const dataDir = temporaryFolder("amqp-restart");
    for (let round = 0; round < 10; round++) {
      const gateway = await startGateway({ dataDir });
      const socket = await openPublisher(gateway);
      await declare(socket, "q");
      await publishAll(socket, "q", [`${round}`]);
      socket.send(1, "queue.declare", { queue: "q", durable: true });
      expect((await socket.expect("queue.declare-ok")).messageCount).toBe(round + 1);
      socket.destroy();
      await gateway.kill(round % 2 === 0 ? "SIGTERM" : "SIGKILL");
    }
    const gateway = await startGateway({ dataDir });
    expect((await consumeAll(gateway, "q")).map(({ text }) => text)).toEqual(
      Array.from({ length: 10 }, (_, n) => `${n}`),
    );
    await gateway.stop();
  }, 180_000);
});
