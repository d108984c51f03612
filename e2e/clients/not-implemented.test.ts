// What HIP-1326 §4 does not implement: 540 on the channel, the connection survives, and the text names the remedy.
// Where RabbitMQ has the feature, or refuses it otherwise, the same test says so.
import { describe, expect, it } from "vitest";
import { AmqpSocket } from "../harness/socket.ts";
import { target } from "../harness/target.ts";
import { differs } from "./differences.ts";
import { refusalOf } from "./refusal.ts";
import { connect, exchangeName, newExchange, newQueue, openChannel } from "./session.ts";

/** The channel is closed with 540, the connection goes on. */
async function expectNotImplemented(
  socket: AmqpSocket,
  classId: number,
  methodId: number,
  remedy: RegExp,
): Promise<void> {
  const close = await socket.expect("channel.close");
  expect(close).toMatchObject({ replyCode: 540, classId, methodId });
  expect(close.replyText).toMatch(/^NOT_IMPLEMENTED - /);
  expect(close.replyText).toMatch(remedy);
  socket.send(1, "channel.close-ok", {});
  await socket.channel(2);
}

async function expectConnectionClosed(socket: AmqpSocket, text: string): Promise<void> {
  const { replyCode, replyText } = await socket.expect("connection.close");
  expect({ replyCode, replyText }).toEqual({ replyCode: 540, replyText: `NOT_IMPLEMENTED - ${text}` });
}

async function open(): Promise<AmqpSocket> {
  const socket = await AmqpSocket.open(await target());
  await socket.channel();
  return socket;
}

describe("exchanges and bindings", () => {
  it("a headers exchange", async () => {
    const channel = await openChannel();
    const exchange = exchangeName();
    const declare = () => channel.assertExchange(exchange, "headers");
    if (!differs("headers-exchange")) {
      await declare();
      return;
    }
    const refusal = await refusalOf(channel, declare);
    expect(refusal).toMatchObject({ scope: "channel", code: 540, method: "exchange.declare" });
    expect(refusal.text).toMatch(/^NOT_IMPLEMENTED - .*topic/);
  });

  it.each(["bindExchange", "unbindExchange"] as const)("exchange-to-exchange: %s", async (verb) => {
    const connection = await connect();
    const channel = await openChannel(connection);
    const [from, to] = [await newExchange(channel, "fanout"), await newExchange(channel, "fanout")];
    const act = () => channel[verb](to, from, "");
    if (!differs("exchange-to-exchange")) {
      await act();
      return;
    }
    const refusal = await refusalOf(channel, act);
    const method = verb === "bindExchange" ? "exchange.bind" : "exchange.unbind";
    expect(refusal).toMatchObject({ scope: "channel", code: 540, method });
    expect(refusal.text).toMatch(/queue/);
    await newQueue(await openChannel(connection));
  });
});

describe("on the wire", () => {
  it.each(["tx.select", "tx.commit", "tx.rollback"] as const)("%s", async (method) => {
    const socket = await open();
    socket.send(1, method, {});
    if (differs("transactions")) {
      const methodId = { "tx.select": 10, "tx.commit": 20, "tx.rollback": 30 }[method];
      await expectNotImplemented(socket, 90, methodId, /confirm\.select/);
    } else if (method === "tx.select") {
      await socket.expect("tx.select-ok");
    } else {
      const { replyCode, replyText } = await socket.expect("channel.close");
      expect(replyCode).toBe(406);
      expect(replyText).toBe("PRECONDITION_FAILED - channel is not transactional");
    }
    socket.destroy();
  });

  it("basic.qos with a prefetch-size", async () => {
    const socket = await open();
    socket.send(1, "basic.qos", { prefetchSize: 1, prefetchCount: 1, global: false });
    if (differs("prefetch-size")) await expectNotImplemented(socket, 60, 10, /count/);
    else await expectConnectionClosed(socket, "prefetch_size!=0 (1)");
    socket.destroy();
  });

  it("basic.publish with immediate", async () => {
    const socket = await open();
    socket.publish(1, { routingKey: "x", immediate: true }, "body");
    if (differs("immediate")) await expectNotImplemented(socket, 60, 40, /mandatory/);
    else await expectConnectionClosed(socket, "immediate=true");
    socket.destroy();
  });

  it("channel.flow that is not active", async () => {
    const socket = await open();
    socket.send(1, "channel.flow", { active: false });
    if (differs("flow-false")) await expectNotImplemented(socket, 20, 20, /basic\.(cancel|qos)/);
    else await expectConnectionClosed(socket, "active=false");
    socket.destroy();
  });

  it("channel.flow that is active is answered", async () => {
    const socket = await open();
    socket.send(1, "channel.flow", { active: true });
    expect(await socket.expect("channel.flow-ok")).toEqual({ active: true });
    socket.destroy();
  });

  it("basic.recover-async", async () => {
    const socket = await open();
    socket.send(1, "basic.recover-async", { requeue: true });
    if (differs("recover-async")) {
      await expectNotImplemented(socket, 60, 100, /basic\.recover/);
    } else {
      await socket.channel(2);
    }
    socket.destroy();
  });

  it("basic.recover with requeue=false", async () => {
    const socket = await open();
    const queue = `test-recover-${process.pid}-${Date.now()}`;
    socket.send(1, "queue.declare", { ...DECLARE, queue, exclusive: true });
    await socket.expect("queue.declare-ok");
    socket.publish(1, { routingKey: queue }, "held");
    socket.send(1, "basic.consume", {
      queue,
      consumerTag: "t",
      noLocal: false,
      noAck: false,
      exclusive: false,
      nowait: false,
      arguments: [],
    });
    await socket.expect("basic.consume-ok");
    await socket.expect("basic.deliver");
    await socket.expectContent();
    socket.send(1, "basic.recover", { requeue: false });
    if (differs("recover-without-requeue")) {
      await socket.expect("basic.recover-ok");
      expect(await socket.expect("basic.deliver")).toMatchObject({ deliveryTag: 2n, redelivered: true });
      expect((await socket.expectContent()).body.toString()).toBe("held");
    } else {
      await expectConnectionClosed(socket, "requeue=false");
    }
    socket.destroy();
  });
});

const DECLARE = { passive: false, durable: false, exclusive: false, autoDelete: false, nowait: false, arguments: [] };
