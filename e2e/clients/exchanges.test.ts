// exchange.*: kinds, flags, passive, equivalence, deletion, the default exchange; in RabbitMQ's words.
import { describe, expect, it } from "vitest";
import { differs } from "./differences.ts";
import { channelRefusal, refusalOf } from "./refusal.ts";
import {
  drain,
  exchangeName,
  get,
  newExchange,
  newQueue,
  openChannel,
  openConfirmChannel,
  publish,
  queueName,
} from "./session.ts";

describe("exchange.declare", () => {
  it.each(["direct", "fanout", "topic"])("declares a %s exchange, again with the same flags", async (kind) => {
    const channel = await openChannel();
    const exchange = exchangeName();
    for (const flags of [{ durable: true }, { durable: false }, { autoDelete: true }, { internal: true }]) {
      await channel.assertExchange(exchange, kind, flags);
      await channel.assertExchange(exchange, kind, flags);
      await channel.deleteExchange(exchange);
    }
  });

  const IN = "in vhost '/': received";
  it.each([
    ["type", "fanout", { durable: true }, `${IN} 'fanout' but current is 'direct'`],
    ["durable", "direct", { durable: false }, `${IN} 'false' but current is 'true'`],
    ["auto_delete", "direct", { autoDelete: true }, `${IN} 'true' but current is 'false'`],
    ["internal", "direct", { internal: true }, `${IN} 'true' but current is 'false'`],
  ])("refuses another %s than declared with 406", async (arg, kind, flags, rest) => {
    const channel = await openChannel();
    const exchange = await newExchange(channel, "direct");
    expect(await refusalOf(channel, () => channel.assertExchange(exchange, kind, flags))).toEqual(
      channelRefusal(
        406,
        `PRECONDITION_FAILED - inequivalent arg '${arg}' for exchange '${exchange}' ${rest}`,
        "exchange.declare",
      ),
    );
  });

  it("names the type first where several things differ", async () => {
    const channel = await openChannel();
    const exchange = await newExchange(channel, "direct");
    const flags = { durable: false, autoDelete: true, internal: true };
    const refusal = await refusalOf(channel, () => channel.assertExchange(exchange, "topic", flags));
    expect(refusal.text).toContain("inequivalent arg 'type'");
  });

  it("refuses an unknown type with 406 on the channel", async () => {
    const channel = await openChannel();
    const refusal = await refusalOf(channel, () => channel.assertExchange(exchangeName(), "nonsense"));
    expect(refusal).toMatchObject({ scope: "channel", code: 406, method: "exchange.declare" });
    const words = "PRECONDITION_FAILED - unknown exchange type 'nonsense'";
    if (differs("refusal-remedies")) expect(refusal.text.startsWith(words), refusal.text).toBe(true);
    else expect(refusal.text).toBe(words);
  });

  it("answers a passive declare where the exchange exists, whatever its flags", async () => {
    const channel = await openChannel();
    await channel.checkExchange(await newExchange(channel, "topic"));
  });

  it("refuses a passive declare of what does not exist with 404", async () => {
    const channel = await openChannel();
    const exchange = exchangeName();
    expect(await refusalOf(channel, () => channel.checkExchange(exchange))).toEqual(
      channelRefusal(404, `NOT_FOUND - no exchange '${exchange}' in vhost '/'`, "exchange.declare"),
    );
  });

  it("refuses alternate-exchange where it is not built, and names it", async () => {
    const channel = await openChannel();
    const exchange = exchangeName();
    const declare = () => channel.assertExchange(exchange, "direct", { alternateExchange: "amq.fanout" });
    if (!differs("exchange-arguments")) {
      await declare();
      return;
    }
    const refusal = await refusalOf(channel, declare);
    expect(refusal).toMatchObject({ scope: "channel", code: 540, method: "exchange.declare" });
    expect(refusal.text).toMatch(/^NOT_IMPLEMENTED - .*alternate-exchange/);
  });

  it.each(["amq.direct", "amq.fanout", "amq.topic"])("knows %s where such a name can be", async (exchange) => {
    const channel = await openChannel();
    const check = () => channel.checkExchange(exchange);
    if (!differs("predeclared-exchanges")) {
      await check();
      return;
    }
    expect([404, 406]).toContain((await refusalOf(channel, check)).code);
  });
});

describe("exchange.delete", () => {
  it("takes what does not exist for deleted", async () => {
    const channel = await openChannel();
    await channel.deleteExchange(exchangeName());
    await channel.deleteExchange(exchangeName(), { ifUnused: true });
  });

  it("refuses if-unused with 406 while a binding stands, and deletes once none does", async () => {
    const channel = await openChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "k");
    expect(await refusalOf(channel, () => channel.deleteExchange(exchange, { ifUnused: true }))).toEqual(
      channelRefusal(406, `PRECONDITION_FAILED - exchange '${exchange}' in vhost '/' in use`, "exchange.delete"),
    );
    const again = await openChannel();
    await again.unbindQueue(queue, exchange, "k");
    await again.deleteExchange(exchange, { ifUnused: true });
    expect((await refusalOf(again, () => again.checkExchange(exchange))).code).toBe(404);
  });

  it("drops its bindings for good and keeps what they had queued", async () => {
    const channel = await openConfirmChannel();
    const exchange = await newExchange(channel, "direct");
    const queue = await newQueue(channel);
    await channel.bindQueue(queue, exchange, "k");
    await publish(channel, exchange, "k", "before");
    await channel.deleteExchange(exchange);
    await channel.assertExchange(exchange, "direct");
    await publish(channel, exchange, "k", "after");
    expect(await drain(channel, queue)).toEqual(["before"]);
  });

  it("touches no queue of the same name", async () => {
    const channel = await openConfirmChannel();
    const name = queueName();
    await channel.assertQueue(name);
    await channel.assertExchange(name, "fanout");
    await publish(channel, "", name, "kept");
    await channel.deleteExchange(name);
    expect((await get(channel, name)).content.toString()).toBe("kept");
  });
});

describe("an auto-delete exchange", () => {
  it("stays until it had a binding, and goes with its last one", async () => {
    const channel = await openChannel();
    const exchange = exchangeName();
    await channel.assertExchange(exchange, "direct", { autoDelete: true });
    const [first, second] = [await newQueue(channel), await newQueue(channel)];
    await channel.checkExchange(exchange);
    await channel.bindQueue(first, exchange, "k");
    await channel.bindQueue(second, exchange, "k");
    await channel.unbindQueue(first, exchange, "k");
    await channel.checkExchange(exchange);
    await channel.deleteQueue(second); // a binding goes with its queue
    expect((await refusalOf(channel, () => channel.checkExchange(exchange))).code).toBe(404);
  });
});

describe("an internal exchange", () => {
  it("refuses a publish with 403", async () => {
    const channel = await openChannel();
    const exchange = exchangeName();
    await channel.assertExchange(exchange, "direct", { internal: true });
    const refusal = await refusalOf(channel, () => channel.publish(exchange, "k", Buffer.from("x")));
    const text = `ACCESS_REFUSED - cannot publish to internal exchange '${exchange}' in vhost '/'`;
    expect(refusal).toEqual(channelRefusal(403, text, "basic.publish"));
  });
});

describe("the default exchange", () => {
  const text = "ACCESS_REFUSED - operation not permitted on the default exchange";

  it("cannot be declared", async () => {
    const channel = await openChannel();
    const refusal = await refusalOf(channel, () => channel.assertExchange("", "direct"));
    expect(refusal).toEqual(channelRefusal(403, text, "exchange.declare"));
  });

  it("cannot be declared passively", async () => {
    const channel = await openChannel();
    const refusal = await refusalOf(channel, () => channel.checkExchange(""));
    expect(refusal).toEqual(channelRefusal(403, text, "exchange.declare"));
  });

  it("cannot be deleted", async () => {
    const channel = await openChannel();
    const refusal = await refusalOf(channel, () => channel.deleteExchange(""));
    expect(refusal).toEqual(channelRefusal(403, text, "exchange.delete"));
  });

  it("cannot be bound", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    const refusal = await refusalOf(channel, () => channel.bindQueue(queue, "", "k"));
    expect(refusal).toEqual(channelRefusal(403, text, "queue.bind"));
  });

  it("cannot be unbound", async () => {
    const channel = await openChannel();
    const queue = await newQueue(channel);
    const refusal = await refusalOf(channel, () => channel.unbindQueue(queue, "", queue));
    expect(refusal).toEqual(channelRefusal(403, text, "queue.unbind"));
  });

  it("routes to every queue by its name", async () => {
    const channel = await openConfirmChannel();
    const queue = await newQueue(channel);
    await publish(channel, "", queue, "hello");
    const message = await get(channel, queue);
    expect(message.fields).toMatchObject({ exchange: "", routingKey: queue, redelivered: false });
    expect(message.content.toString()).toBe("hello");
  });
});
