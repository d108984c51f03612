// Names and published keys that cannot be a subject on the bus: 406 on the channel, with the rule (HIP §2).
import { describe, expect, it } from "vitest";
import { differs } from "./differences.ts";
import { refusalOf } from "./refusal.ts";
import { drain, newExchange, newQueue, openChannel, openConfirmChannel, publish } from "./session.ts";

const unique = `${process.pid}-${Date.now()}`;
const REFUSED = ["a.b", "a b", "a:b", "ä", "a*", "a>", "a#", "a/b", "a".repeat(129)].map((name) =>
  name.length > 128 ? name : `test-${unique}-${name}`,
);

describe("names", () => {
  it.each(REFUSED)("queue %s", async (queue) => {
    const channel = await openChannel();
    const declare = () => channel.assertQueue(queue, { exclusive: true });
    if (!differs("names")) {
      await declare();
      return;
    }
    const refusal = await refusalOf(channel, declare);
    expect(refusal).toMatchObject({ scope: "channel", code: 406, method: "queue.declare" });
    expect(refusal.text).toMatch(/^PRECONDITION_FAILED - .*128/);
  });

  it.each(REFUSED)("exchange %s", async (exchange) => {
    const channel = await openChannel();
    const declare = () => channel.assertExchange(exchange, "direct", { durable: false, autoDelete: true });
    if (!differs("names")) {
      await declare();
      await channel.deleteExchange(exchange);
      return;
    }
    const refusal = await refusalOf(channel, declare);
    expect(refusal).toMatchObject({ scope: "channel", code: 406, method: "exchange.declare" });
    expect(refusal.text).toMatch(/^PRECONDITION_FAILED - .*128/);
  });

  it("an exchange _ is the default exchange's word on the bus", async () => {
    const channel = await openChannel();
    const declare = () => channel.assertExchange("_", "direct", { durable: false, autoDelete: true });
    if (!differs("names")) {
      await declare();
      await channel.deleteExchange("_");
      return;
    }
    expect(await refusalOf(channel, declare)).toMatchObject({
      scope: "channel",
      code: 406,
      method: "exchange.declare",
    });
  });

  it("128 characters of every allowed kind are a name", async () => {
    const channel = await openConfirmChannel();
    const name = `test-${unique}_AZaz09-`.padEnd(128, "x");
    await channel.assertQueue(name, { exclusive: true });
    await channel.assertExchange(name, "fanout", { durable: false, autoDelete: true });
    await channel.bindQueue(name, name, "");
    await publish(channel, name, "", "hello");
    expect(await drain(channel, name)).toEqual(["hello"]);
  });
});

describe("published keys", () => {
  it.each([".", "a.", ".a", "a..b", "*", "a.*", "#", "a.#", ">", "a>b", "a b", "a\tb", "a\r\nb", "a\u0000b"])(
    "%j",
    async (key) => {
      const channel = await openConfirmChannel();
      const exchange = await newExchange(channel, "topic");
      if (!differs("publish-keys")) {
        await publish(channel, exchange, key, "x");
        return;
      }
      const refusal = await refusalOf(channel, () => channel.publish(exchange, key, Buffer.from("x")));
      expect(refusal).toMatchObject({ scope: "channel", code: 406, method: "basic.publish" });
      expect(refusal.text).toMatch(/^PRECONDITION_FAILED - /);
    },
  );

  it.each(["_", "a:b/c@d", "ä.ö.日本", "$SYS.x", "a".repeat(200), "A.b.C", "a-b_c.1", "{}[]()!?,;"])(
    "%j is taken, and kept",
    async (key) => {
      const channel = await openConfirmChannel();
      const exchange = await newExchange(channel, "fanout");
      const queue = await newQueue(channel);
      await channel.bindQueue(queue, exchange, "");
      await publish(channel, exchange, key, "x");
      const message = await channel.get(queue, { noAck: true });
      expect(message !== false && message.fields.routingKey).toBe(key);
    },
  );
});
