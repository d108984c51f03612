import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bytes, fill, NatsServer, NONE, type Opened, Outcomes, open, Pulled, sleep, text, until } from "./harness.ts";

const MIB = 1024 * 1024;

describe("pulls", () => {
  let server: NatsServer;
  let opened: Opened;
  let serial = 0;

  beforeAll(async () => {
    server = await NatsServer.start();
    opened = await open(server);
  });
  afterAll(async () => {
    await opened.close();
    await server.stop();
  });

  async function queue(): Promise<{ name: string; subject: string }> {
    const name = `q${++serial}`;
    await opened.bus.createCursor({ queue: name, filters: [`amqp._.${name}`], revision: serial, queueId: serial });
    return { name, subject: `amqp._.${name}` };
  }

  it("hands on the message as it was published", async () => {
    const { bus } = opened;
    const { name, subject } = await queue();
    const properties = new Uint8Array(300).map((_, i) => i);
    const outcomes = new Outcomes();
    const before = Date.now();
    bus.publish(subject, properties, [bytes("hel"), bytes("lo"), new Uint8Array(0)], outcomes, 9);
    await until(() => outcomes.of.size === 1);
    expect(outcomes.of.get(9)).toBe("stored");
    const sink = new Pulled();
    const line = bus.openPull(name, sink);
    line.ask(1, true);
    await until(() => sink.messages.length === 1);
    const [message] = sink.messages;
    if (message === undefined) throw new Error("no message");
    expect(text(message.body)).toBe("hello");
    expect(new Uint8Array(message.properties)).toEqual(properties);
    expect(message.subject).toBe(subject);
    expect(message.attempts).toBe(1);
    expect(message.deliverySequence).toBe(1);
    expect(message.sequence).toBe(await bus.lastSequence());
    expect(Math.abs(message.time - before)).toBeLessThan(2_000);
    bus.settle(message.token, "ack");
    await bus.settled(name);
    expect(await bus.cursorState(name)).toMatchObject({ ackPending: 0, pending: 0 });
    await line.takeBack();
  });

  it("reads native publishers' messages, with and without headers, and subjects beyond ASCII", async () => {
    const { bus, publishing, log } = opened;
    const { name } = await queue();
    const { headers } = await import("@nats-io/nats-core");
    await bus.updateCursor({ queue: name, filters: [`amqp._.${name}`, "amqp.näh.>"], revision: 2, queueId: 1 });
    const plain = headers();
    plain.set("X-Other", "value");
    const both = headers();
    both.set("X-Other", "Amqp-Props: no");
    both.set("Amqp-Props", Buffer.from([0x10, 0, 2]).toString("base64"));
    const broken = headers();
    broken.set("Amqp-Props", "***");
    publishing.publish(`amqp._.${name}`, "bare");
    publishing.publish(`amqp._.${name}`, "", { headers: both });
    publishing.publish(`amqp._.${name}`, "plain", { headers: plain });
    publishing.publish("amqp.näh.ß", "beyond", { headers: both });
    publishing.publish(`amqp._.${name}`, "broken", { headers: broken });
    const sink = new Pulled();
    const line = bus.openPull(name, sink);
    line.ask(5, true);
    await until(() => sink.messages.length === 5);
    expect(sink.messages.map((message) => [text(message.body), [...message.properties]])).toEqual([
      ["bare", [0, 0]],
      ["", [0x10, 0, 2]],
      ["plain", [0, 0]],
      ["beyond", [0x10, 0, 2]],
      ["broken", [0, 0]],
    ]);
    expect(log.lines.some((line) => line.startsWith("debug") && line.includes("no base64"))).toBe(true);
    for (const message of sink.messages) bus.settle(message.token, "ack");
    await line.takeBack();
  });

  it("answers a no-wait ask at once: what is there, the rest as empty", async () => {
    const { bus } = opened;
    const { name, subject } = await queue();
    const sink = new Pulled();
    const line = bus.openPull(name, sink);
    line.ask(1, false);
    await until(() => sink.ends.length === 1);
    expect(sink.ends).toEqual([{ missing: 1, why: "empty" }]);
    await fill(bus, subject, 3);
    line.ask(10, false);
    await until(() => sink.messages.length === 3 && sink.ends.length === 2);
    expect(sink.ends[1]).toEqual({ missing: 7, why: "empty" });
    // While another pull waits, nothing was found but that says little: not `empty`.
    const waiting = bus.openPull(name, new Pulled());
    waiting.ask(1, true);
    await sleep(50);
    line.ask(1, false);
    await until(() => sink.ends.length === 3);
    expect(["expired", "empty"]).toContain(sink.ends[2]?.why);
    for (const message of sink.messages) bus.settle(message.token, "ack");
    await waiting.takeBack();
    await line.takeBack();
  });

  it("says when its time is up and when the cursor is gone", async () => {
    const { bus } = opened;
    const { name } = await queue();
    const sink = new Pulled();
    const line = bus.openPull(name, sink);
    line.ask(5, true);
    await until(() => sink.ends.length === 1, 6_000);
    expect(sink.ends).toEqual([{ missing: 5, why: "expired" }]);
    line.ask(2, true);
    await sleep(50);
    await bus.deleteCursor(name);
    await until(() => sink.ends.length === 2);
    expect(sink.ends[1]).toEqual({ missing: 2, why: "gone" });
    line.ask(2, true);
    await until(() => sink.ends.length === 3);
    expect(sink.ends[2]).toEqual({ missing: 2, why: "gone" });
    await line.takeBack();
  });

  it("says so too where a subscriber to everything keeps the bus from saying that nobody answers", async () => {
    const { bus, publishing } = opened;
    const { name } = await queue();
    const spy = publishing.subscribe(">", { callback: () => undefined });
    await publishing.flush();
    try {
      const sink = new Pulled();
      const line = bus.openPull(name, sink);
      const other = await open(server);
      await other.bus.deleteCursor(name);
      await other.close();
      line.ask(2, false);
      await until(() => sink.ends.length === 1, 10_000);
      expect(sink.ends[0]).toEqual({ missing: 2, why: "gone" });
      // Nobody waits for the bus where this process knows it: that it deleted the cursor, or was told so.
      line.ask(3, false);
      bus.forget(name);
      await until(() => sink.ends.length === 2, 100);
      expect(sink.ends[1]).toEqual({ missing: 3, why: "gone" });
      await line.takeBack();
    } finally {
      spy.unsubscribe();
    }
  });

  it("loses nothing when taken back while messages are under way", async () => {
    const { bus } = opened;
    const { name, subject } = await queue();
    for (let round = 0; round < 10; round++) {
      await fill(bus, subject, 900, 200);
      const sink = new Pulled();
      const line = bus.openPull(name, sink);
      line.ask(900, true);
      // Anywhere in the middle of the batch, also before its first message.
      if (round > 0) await until(() => sink.messages.length >= (round - 1) * 10);
      await line.takeBack();
      const came = sink.messages.length;
      await sleep(20);
      expect(sink.messages.length).toBe(came);
      for (const message of sink.messages) bus.settle(message.token, "ack");
      await bus.settled(name);
      // Take the rest.
      const rest = new Pulled();
      const other = bus.openPull(name, rest);
      other.ask(900 - came, true);
      // At once: also one that the bus was about to send when it heard of it, which it puts back in line itself.
      await until(() => rest.messages.length === 900 - came, 2_000);
      const all = [...sink.messages, ...rest.messages].map((message) => message.sequence);
      expect(new Set(all).size).toBe(900);
      for (const message of rest.messages) bus.settle(message.token, "ack");
      await other.takeBack();
      await bus.settled(name);
      expect(await bus.cursorState(name)).toMatchObject({ ackPending: 0, pending: 0 });
    }
  });

  it("lets messages larger than any share flow, among small ones, in order", async () => {
    const { bus } = opened;
    const { name, subject } = await queue();
    const sizes = [10, 10, 5 * MIB, 10, 8 * MIB - 2_000, 8 * MIB - 2_000, 10, 300_000, 3 * MIB, 10, 700_000, 10];
    const outcomes = new Outcomes();
    sizes.forEach((size, i) => {
      bus.publish(subject, NONE, [new Uint8Array(size)], outcomes, i);
    });
    await until(() => outcomes.count("stored") === sizes.length);
    for (const wait of [true, false]) {
      const sink = new Pulled();
      const line = bus.openPull(name, sink);
      line.ask(sizes.length, wait);
      await until(() => sink.messages.length === sizes.length);
      expect(sink.messages.map((message) => message.body.length)).toEqual(sizes);
      expect(sink.ends).toEqual([]);
      await line.takeBack();
      for (const message of sink.messages) bus.settle(message.token, wait ? "nak" : "ack");
      await bus.settled(name);
    }
    expect(await bus.cursorState(name)).toMatchObject({ ackPending: 0, pending: 0 });
  });

  it("keeps exact account of credit given bit by bit", { timeout: 60_000 }, async () => {
    const { bus } = opened;
    const { name, subject } = await queue();
    await fill(bus, subject, 3_000);
    const sink = new Pulled();
    const line = bus.openPull(name, sink);
    let most = 0;
    let out = 0;
    sink.onMessage = (message) => {
      most = Math.max(most, ++out);
      setTimeout(() => {
        bus.settle(message.token, "ack");
        out--;
        line.ask(1, true);
      }, Math.random() * 3);
    };
    line.ask(50, true);
    await until(() => sink.messages.length === 3_000, 20_000);
    expect(most).toBeLessThanOrEqual(50);
    const sequences = sink.messages.map((message) => message.sequence);
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    // 50 are owed now: they end in one or more parts, and no more than 50.
    await until(() => sink.ends.reduce((sum, end) => sum + end.missing, 0) === 50, 20_000);
    await sleep(100);
    expect(sink.ends.reduce((sum, end) => sum + end.missing, 0)).toBe(50);
    await line.takeBack();
  });

  it("gives each of 2,000 idle queues its turn at once", { timeout: 60_000 }, async () => {
    const { bus } = opened;
    const { name, subject } = await queue();
    // Lines on one queue are the same to the budget; only 512 pulls may wait on a consumer, so use several.
    const others = await Promise.all(Array.from({ length: 9 }, queue));
    const lines = Array.from({ length: 2_000 }, (_, i) => {
      const sink = new Pulled();
      const line = bus.openPull(others[i % 9]?.name ?? name, sink);
      sink.onEnd = (missing, why) => {
        if (why === "expired") line.ask(missing, true);
      };
      line.ask(10, true);
      return { line, sink };
    });
    await sleep(100);
    const sink = new Pulled();
    const line = bus.openPull(name, sink);
    await fill(bus, subject, 500, 1_000);
    const start = Date.now();
    line.ask(500, true);
    await until(() => sink.messages.length === 500, 6_000);
    expect(Date.now() - start).toBeLessThan(5_000);
    for (const message of sink.messages) bus.settle(message.token, "ack");
    await Promise.all([...lines.map((each) => each.line.takeBack()), line.takeBack()]);
    expect(lines.flatMap((each) => each.sink.ends).filter((end) => end.why !== "expired")).toEqual([]);
  });
});
