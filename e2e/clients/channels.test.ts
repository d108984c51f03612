// Channels and connections as amqplib sees them: opening, closing, reuse, and how far an exception reaches.
import { describe, expect, it } from "vitest";
import { differs } from "./differences.ts";
import { refusalOf } from "./refusal.ts";
import { connect, newQueue, openChannel, openConfirmChannel, queueName, send, until } from "./session.ts";

describe("a connection", () => {
  it("opens vhost /, and closes", async () => {
    const connection = await connect();
    let closed = false;
    connection.on("close", () => {
      closed = true;
    });
    await connection.close();
    expect(closed).toBe(true);
  });

  it("advertises what it honours", async () => {
    const { connection } = await connect();
    const { capabilities } = connection.serverProperties as unknown as {
      capabilities: Partial<Record<string, boolean>>;
    };
    expect(capabilities).toMatchObject({
      publisher_confirms: true,
      "basic.nack": true,
      consumer_cancel_notify: true,
      "connection.blocked": true,
      authentication_failure_close: true,
      per_consumer_qos: true,
    });
    expect(capabilities.exchange_exchange_bindings ?? false).toBe(!differs("exchange-to-exchange"));
  });

  it("carries many channels at a time, each on its own", async () => {
    const connection = await connect();
    const channels = await Promise.all(Array.from({ length: 50 }, () => openConfirmChannel(connection)));
    await Promise.all(
      channels.map(async (channel, i) => {
        const { queue } = await channel.assertQueue(queueName(), { exclusive: true });
        await send(channel, queue, `${i}`);
        const message = await channel.get(queue, { noAck: true });
        expect(message !== false && message.content.toString()).toBe(`${i}`);
      }),
    );
  });
});

describe("a channel", () => {
  it("gives its number free when it closes", async () => {
    const connection = await connect();
    for (let i = 0; i < 20; i++) {
      const channel = await openChannel(connection);
      expect((channel as unknown as { ch: number }).ch).toBe(1);
      await channel.close();
    }
  });

  it("closes alone: an exception leaves the connection and its other channels", async () => {
    const connection = await connect();
    const [failing, other] = [await openChannel(connection), await openChannel(connection)];
    const refusal = await refusalOf(failing, () => failing.checkQueue(queueName()));
    expect(refusal.scope).toBe("channel");
    await newQueue(other);
    const reused = await openChannel(connection);
    expect((reused as unknown as { ch: number }).ch).toBe(1);
    await newQueue(reused);
  });

  it("forgets its consumers when it closes", async () => {
    const connection = await connect();
    const channel = await openChannel(connection);
    const queue = await newQueue(channel);
    await channel.consume(queue, () => undefined);
    await channel.close();
    const other = await openChannel(connection);
    await until(async () => (await other.checkQueue(queue)).consumerCount === 0);
  });

  it("forgets its confirm mode and prefetch when its number is reused", async () => {
    const connection = await connect();
    const confirming = await openConfirmChannel(connection);
    await confirming.prefetch(1);
    const queue = await newQueue(confirming);
    await send(confirming, queue, "a", "b");
    await confirming.close();
    const channel = await openChannel(connection);
    channel.on("ack", () => expect.unreachable());
    channel.sendToQueue(queue, Buffer.from("c"));
    const texts: string[] = [];
    await channel.consume(queue, (message) => texts.push(message?.content.toString() ?? ""));
    await until(() => texts.length === 3);
  });
});
