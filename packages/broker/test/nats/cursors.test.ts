import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fill, NatsServer, type Opened, open, Pulled, until } from "./harness.ts";
import { stored } from "./stored.ts";

describe("cursors", () => {
  let server: NatsServer;
  let opened: Opened;

  beforeAll(async () => {
    server = await NatsServer.start();
    opened = await open(server);
  });
  afterAll(async () => {
    await opened.close();
    await server.stop();
  });

  it("has what it was made with, and what is pending", async () => {
    const { bus } = opened;
    const spec = { queue: "state", filters: ["amqp._.state", "amqp.t.>"], revision: 7, queueId: 3 };
    const before = await bus.lastSequence();
    await bus.createCursor(spec);
    await fill(bus, "amqp._.state", 5);
    await fill(bus, "amqp.t.a", 2);
    const state = await bus.cursorState("state");
    expect(state).toEqual({
      ...spec,
      pending: 7,
      ackPending: 0,
      ackFloor: state?.ackFloor,
      delivered: state?.delivered,
      deliveredSequence: 0,
    });
    expect(state?.ackFloor).toBeLessThanOrEqual(before + 1);
    expect(await bus.logState()).toMatchObject({ lastSequence: before + 7 });
    expect(await stored(bus)).toBe(7);
    expect(await bus.deleteCursor("state")).toBe(true);
    expect(await bus.deleteCursor("state")).toBe(false);
    expect(await bus.cursorState("state")).toBeUndefined();
  });

  it("writes the HIP's consumer settings", async () => {
    const { bus, delivering } = opened;
    await bus.createCursor({ queue: "exact", filters: ["amqp._.exact"], revision: 1, queueId: 1 });
    const reply = await delivering.request("$JS.API.CONSUMER.INFO.AMQP.exact");
    expect(reply.json<{ config: object }>().config).toMatchObject({
      durable_name: "exact",
      ack_policy: "explicit",
      ack_wait: 300_000_000_000,
      deliver_policy: "new",
      max_ack_pending: -1,
      filter_subject: "amqp._.exact",
      metadata: { "amqp-queue-id": "1", "amqp-revision": "1" },
    });
    await bus.deleteCursor("exact");
  });

  it("creates only what is not there, updates only what is", async () => {
    const { bus } = opened;
    const spec = { queue: "exclusive", filters: ["amqp._.exclusive"], revision: 1, queueId: 1 };
    expect(await bus.updateCursor(spec)).toBe(false);
    expect(await bus.cursorState("exclusive")).toBeUndefined();
    await bus.createCursor(spec);
    await bus.createCursor(spec);
    await expect(bus.createCursor({ ...spec, filters: ["amqp._.other"] })).rejects.toMatchObject({
      name: "BusError",
      timeout: false,
    });
    expect(await bus.updateCursor({ ...spec, filters: ["amqp._.exclusive", "amqp.x"], revision: 2 })).toBe(true);
    expect(await bus.cursorState("exclusive")).toMatchObject({
      filters: ["amqp._.exclusive", "amqp.x"],
      revision: 2,
    });
    await bus.deleteCursor("exclusive");
    expect(await bus.updateCursor(spec)).toBe(false);
    expect(await bus.cursorState("exclusive")).toBeUndefined();
  });

  it("refuses an empty set of filters: it would mean the whole log", async () => {
    await expect(opened.bus.createCursor({ queue: "none", filters: [], revision: 1, queueId: 1 })).rejects.toThrow(
      /whole log/,
    );
    expect(await opened.bus.count([], 0)).toBe(0);
    expect(await opened.bus.collect([], 0)).toBe(0);
  });

  it("lists its own over several pages, and no foreign ones", async () => {
    const { bus, delivering } = opened;
    const names = Array.from({ length: 300 }, (_, i) => `page-${i}`);
    for (const [i, queue] of names.entries()) {
      await bus.createCursor({ queue, filters: [`amqp._.${queue}`], revision: i + 1, queueId: i + 1 });
    }
    await delivering.request(
      "$JS.API.CONSUMER.CREATE.AMQP.foreign",
      JSON.stringify({
        stream_name: "AMQP",
        config: { durable_name: "foreign", ack_policy: "explicit", filter_subject: "amqp.f" },
      }),
    );
    const listed = await bus.cursors();
    expect(new Set(listed.map((state) => state.queue))).toEqual(new Set(names));
    expect(listed.length).toBe(names.length);
    expect(listed.find((state) => state.queue === "page-42")?.queueId).toBe(43);
    for (const queue of names) await bus.deleteCursor(queue);
    await bus.deleteCursor("foreign");
  });

  it("counts exactly, above a sequence, and holds nothing back afterwards", async () => {
    const { bus } = opened;
    await bus.createCursor({ queue: "counted", filters: ["amqp.c.>"], revision: 1, queueId: 1 });
    await fill(bus, "amqp.c.a", 10);
    const above = await bus.lastSequence();
    await fill(bus, "amqp.c.a", 20);
    await fill(bus, "amqp.c.b", 5);
    expect(await bus.count(["amqp.c.>"], 0)).toBe(35);
    expect(await bus.count(["amqp.c.a", "amqp.c.b"], above)).toBe(25);
    expect(await bus.count(["amqp.c.b"], above)).toBe(5);
    expect(await bus.count(["amqp.c.b"], above + 1_000)).toBe(0);
    await bus.deleteCursor("counted");
    expect(await stored(bus)).toBe(0);
  });

  it("collects what nobody wants any more", async () => {
    const { bus } = opened;
    const spec = { queue: "left", filters: ["amqp.l.>"], revision: 1, queueId: 1 };
    await bus.createCursor(spec);
    await fill(bus, "amqp.l.a", 1_300);
    await fill(bus, "amqp.l.b", 10);
    // Interest of another cursor keeps its own.
    await bus.createCursor({ queue: "right", filters: ["amqp.l.b"], revision: 1, queueId: 2 });
    await fill(bus, "amqp.l.b", 3);
    expect(await bus.collect(["amqp.l.a", "amqp.l.b"], 0)).toBe(1_313);
    // `left` still wants all of it; collecting took only its own interest.
    expect((await bus.cursorState("left"))?.pending).toBe(1_313);
    await bus.deleteCursor("left");
    await until(() => true);
    expect(await stored(bus)).toBe(3);
    await bus.deleteCursor("right");
  });

  it("drains with headers only, then updates back", async () => {
    const { bus } = opened;
    const spec = { queue: "drained", filters: ["amqp._.drained"], revision: 1, queueId: 1 };
    await bus.createCursor(spec);
    await fill(bus, "amqp._.drained", 3);
    expect(await bus.updateCursor(spec, { headersOnly: true })).toBe(true);
    const sink = new Pulled();
    const line = bus.openPull("drained", sink);
    line.ask(3, false);
    await until(() => sink.messages.length === 3);
    expect(sink.messages.map((message) => message.body.length)).toEqual([0, 0, 0]);
    await line.takeBack();
    for (const message of sink.messages) bus.settle(message.token, "ack");
    await bus.settled("drained");
    expect(await stored(bus)).toBe(0);
    await bus.deleteCursor("drained");
  });
});
