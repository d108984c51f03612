// The message that always stands in the log, so that the bus cannot lose what is stored beside the end of a consumer.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fill, NatsServer, type Opened, open, Pulled, sleep, until } from "./harness.ts";
import { standing } from "./stored.ts";

describe("the log's standing message", () => {
  let server: NatsServer;
  const opened: Opened[] = [];

  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
  });
  afterAll(async () => {
    await server.stop();
  });

  async function replica(): Promise<Opened> {
    const one = await open(server);
    opened.push(one);
    return one;
  }

  it("is there from the start, and is one, however many replicas there are and were", async () => {
    const first = await replica();
    expect((await first.bus.logState()).messages).toBe(1);
    await replica();
    await replica();
    await until(async () => (await standing(first.bus)).length === 1, 5_000);
    expect((await first.bus.logState()).messages).toBe(1);
  });

  it("is no queue's", async () => {
    expect(await (await replica()).bus.cursors()).toEqual([]);
  });

  it("law: the log is never empty while its messages come and go, and the one that stands follows them", async () => {
    const both = [await replica(), await replica()];
    const [one] = both;
    if (one === undefined) throw new Error("two replicas were opened");
    const { bus } = one;
    await bus.createCursor({ queue: "busy", filters: ["amqp._.busy"], revision: 1, queueId: 1 });
    const [before = 0] = await standing(one.bus);
    const sink = new Pulled();
    const line = bus.openPull("busy", sink);
    const end = Date.now() + 4_000;
    let acknowledged = 0;
    while (Date.now() < end) {
      line.ask(50, true);
      await fill(bus, "amqp._.busy", 50);
      await until(() => sink.messages.length === acknowledged + 50, 5_000);
      for (; acknowledged < sink.messages.length; acknowledged++) {
        bus.settle(sink.messages[acknowledged]?.token ?? "", "ack");
      }
      await bus.settled("busy");
      expect((await bus.logState()).messages).toBeGreaterThanOrEqual(1);
    }
    await line.takeBack();
    const [after = 0] = await standing(one.bus);
    expect(after).toBeGreaterThan(before);
    await until(async () => (await standing(one.bus)).length <= both.length, 5_000);
  });

  it("is made again where somebody took it, or its cursor, away", async () => {
    const one = await replica();
    await sleep(1_200);
    await one.bus.deleteCursor("$keeper");
    await until(async () => (await standing(one.bus)).length === 0, 5_000);
    await one.bus.createCursor({ queue: "q", filters: ["amqp._.q"], revision: 1, queueId: 2 });
    for (let tries = 0; tries < 8 && (await standing(one.bus)).length === 0; tries++) {
      await fill(one.bus, "amqp._.q", 1);
      await sleep(500);
    }
    expect((await standing(one.bus)).length).toBeGreaterThanOrEqual(1);
  });
});
