import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fill, NatsServer, type Opened, open, Pulled, sleep, text, until } from "./harness.ts";

describe("settlements", () => {
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

  async function queue(messages: number): Promise<string> {
    const name = `s${++serial}`;
    await opened.bus.createCursor({ queue: name, filters: [`amqp._.${name}`], revision: serial, queueId: serial });
    if (messages > 0) await fill(opened.bus, `amqp._.${name}`, messages);
    return name;
  }

  async function take(name: string, count: number): Promise<Pulled> {
    const sink = new Pulled();
    const line = opened.bus.openPull(name, sink);
    line.ask(count, false);
    await until(() => sink.messages.length + sink.ends.reduce((sum, end) => sum + end.missing, 0) === count);
    await line.takeBack();
    return sink;
  }

  it("acks, then settled, then the state: never stale in 1,000 rounds", { timeout: 60_000 }, async () => {
    const { bus } = opened;
    const name = await queue(2_000);
    const { messages } = await take(name, 2_000);
    expect(messages.length).toBe(2_000);
    let stale = 0;
    for (let round = 0; round < 1_000; round++) {
      for (let i = 0; i < 2; i++) bus.settle(messages[round * 2 + i]?.token ?? "", "ack");
      await bus.settled(name);
      const state = await bus.cursorState(name);
      if (state?.ackPending !== 2_000 - (round + 1) * 2) stale++;
    }
    expect(stale).toBe(0);
  });

  it("naks, then settled, then a no-wait pull: always found, in the order of the naks", {
    timeout: 60_000,
  }, async () => {
    const { bus } = opened;
    const name = await queue(50);
    for (let round = 0; round < 100; round++) {
      const { messages } = await take(name, 50);
      expect(messages.length).toBe(50);
      expect(messages.map((message) => Number(text(message.body)))).toEqual(messages.map((_, i) => i));
      expect(messages[0]?.attempts).toBe(round + 1);
      for (const message of messages) bus.settle(message.token, "nak");
      await bus.settled(name);
    }
  });

  it("keeps order through a requeue of messages that no first share holds", async () => {
    const { bus } = opened;
    const name = await queue(0);
    await fill(bus, `amqp._.${name}`, 200, 30_000);
    for (let round = 0; round < 3; round++) {
      const { messages } = await take(name, 200);
      expect(messages.map((message) => Number(text(message.body)))).toEqual(messages.map((_, i) => i));
      for (const message of messages) bus.settle(message.token, "nak");
      await bus.settled(name);
    }
  });

  it("has nak'd messages there again at once after kill -9 of the bus", { timeout: 60_000 }, async () => {
    const { bus, told } = opened;
    const name = await queue(20);
    const { messages } = await take(name, 20);
    for (const message of messages) bus.settle(message.token, "nak");
    await bus.settled(name);
    // The bus flushes a cursor's state every 100 ms or so (design §5).
    await sleep(500);
    await server.kill();
    await server.run();
    await until(() => told.events.includes("back true"));
    const again = await take(name, 20);
    expect(again.messages.map((message) => Number(text(message.body)))).toEqual(messages.map((_, i) => i));
    for (const message of again.messages) bus.settle(message.token, "ack");
    await bus.settled(name);
  });

  it("terminates, and restarts the ack wait, without a word lost", async () => {
    const { bus } = opened;
    const name = await queue(3);
    const { messages } = await take(name, 3);
    bus.settle(messages[0]?.token ?? "", "term");
    bus.settle(messages[1]?.token ?? "", "progress");
    await bus.settled(name);
    expect(await bus.cursorState(name)).toMatchObject({ ackPending: 2, pending: 0 });
    // SWEEP's way: by sequence, nobody knows the token any more; not pending ones are ignored.
    const second = messages[1];
    const third = messages[2];
    if (second === undefined || third === undefined) throw new Error("no messages");
    bus.nakAbandoned(name, second.sequence, second.deliverySequence);
    bus.nakAbandoned(name, second.sequence - 1, second.deliverySequence - 1);
    bus.nakAbandoned(name, 999_999, 1);
    bus.ackAbandoned(name, third.sequence, third.deliverySequence);
    await bus.settled(name);
    expect(await bus.cursorState(name)).toMatchObject({ ackPending: 1 });
    const again = await take(name, 5);
    expect(again.messages.map((message) => message.sequence)).toEqual([second.sequence]);
    bus.settle(again.messages[0]?.token ?? "", "ack");
    await bus.settled(name);
    expect((await bus.cursorState(name))?.ackPending).toBe(0);
  });

  it("resolves for a queue that is not there", async () => {
    await opened.bus.settled("nowhere");
  });
});
