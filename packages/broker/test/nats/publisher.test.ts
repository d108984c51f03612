import { afterEach, describe, expect, it } from "vitest";
import { bytes, fill, NatsServer, NONE, type Opened, Outcomes, open, Pulled, sleep, text, until } from "./harness.ts";
import { stored } from "./stored.ts";

const MIB = 1024 * 1024;

describe("publishes", () => {
  let server: NatsServer | undefined;
  let opened: Opened | undefined;

  afterEach(async () => {
    await opened?.close();
    await server?.stop();
    opened = undefined;
    server = undefined;
  });

  async function start(options = {}, domain = ""): Promise<{ server: NatsServer; opened: Opened }> {
    server = await NatsServer.start("", domain);
    opened = await open(server, options);
    return { server, opened };
  }

  /** The two connections hear of a crash one after the other. */
  async function publishingLost({ log }: Opened): Promise<void> {
    await until(() => log.lines.some((line) => line.includes("(publishing): connection lost")));
  }

  async function readAll(name: string, count: number): Promise<number[]> {
    const sink = new Pulled();
    const bus = opened?.bus;
    if (bus === undefined) throw new Error("no bus");
    const line = bus.openPull(name, sink);
    line.ask(count, true);
    await until(() => sink.messages.length === count, 30_000);
    await line.takeBack();
    return sink.messages.map((message) => Number(text(message.body)));
  }

  it("keeps the order of 30,000 handed over at once, each answered once", { timeout: 60_000 }, async () => {
    const { bus, told } = (await start()).opened;
    await bus.createCursor({ queue: "many", filters: ["amqp._.many"], revision: 1, queueId: 1 });
    const outcomes = new Outcomes();
    for (let i = 0; i < 30_000; i++) bus.publish("amqp._.many", NONE, [bytes(String(i))], outcomes, i);
    expect(bus.room).toBe(false);
    await until(() => outcomes.of.size === 30_000, 30_000);
    expect(outcomes.count("stored")).toBe(30_000);
    expect(outcomes.twice).toBe(0);
    expect(bus.room).toBe(true);
    expect(told.events).toContain("room");
    const read = await readAll("many", 30_000);
    expect(read).toEqual(read.map((_, i) => i));
  });

  it("closes the window at 4,000 messages or 32 MiB, not before", async () => {
    const { bus } = (await start()).opened;
    const outcomes = new Outcomes();
    for (let i = 0; i < 3_999; i++) bus.publish("amqp._.w", NONE, [], outcomes, i);
    expect(bus.room).toBe(true);
    bus.publish("amqp._.w", NONE, [], outcomes, 3_999);
    expect(bus.room).toBe(false);
    await until(() => outcomes.of.size === 4_000);
    expect(bus.room).toBe(true);
    for (let i = 0; i < 7; i++) bus.publish("amqp._.w", NONE, [new Uint8Array(4 * MIB)], outcomes, 5_000 + i);
    expect(bus.room).toBe(true);
    bus.publish("amqp._.w", NONE, [new Uint8Array(4 * MIB)], outcomes, 5_007);
    expect(bus.room).toBe(false);
    await until(() => outcomes.count("stored") === 4_008);
    expect(bus.room).toBe(true);
  });

  it("takes a message of exactly the greatest size, and refuses one octet more", async () => {
    const { bus } = (await start()).opened;
    await bus.createCursor({ queue: "size", filters: ["amqp._.size"], revision: 1, queueId: 1 });
    const outcomes = new Outcomes();
    const properties = new Uint8Array(100);
    const most = bus.maxPayload - bus.encodedSize(properties.length);
    bus.publish("amqp._.size", properties, [new Uint8Array(most)], outcomes, 1);
    bus.publish("amqp._.size", properties, [new Uint8Array(most + 1)], outcomes, 2);
    bus.publish("amqp._.size", NONE, [], outcomes, 3);
    await until(() => outcomes.of.size === 3);
    expect(Object.fromEntries(outcomes.of)).toEqual({ 1: "stored", 2: "refused", 3: "stored" });
    // Headers stop at 64 KiB: what would not fit is never within maxPayload.
    expect(bus.encodedSize(49_000)).toBeLessThan(65_535);
    expect(bus.encodedSize(49_200)).toBe(Number.POSITIVE_INFINITY);
    bus.publish("amqp._.size", new Uint8Array(49_000), [], outcomes, 4);
    await until(() => outcomes.of.has(4));
    expect(outcomes.of.get(4)).toBe("stored");
  });

  it("says full, refuses, and takes again when there is room", { timeout: 60_000 }, async () => {
    const { bus, told } = (await start({ maxBytes: 4 * MIB })).opened;
    await bus.createCursor({ queue: "full", filters: ["amqp._.full"], revision: 1, queueId: 1 });
    const outcomes = new Outcomes();
    for (let i = 0; i < 100; i++) bus.publish("amqp._.full", NONE, [new Uint8Array(100_000)], outcomes, i);
    await until(() => outcomes.of.size === 100);
    const stored = outcomes.count("stored");
    expect(stored).toBeGreaterThan(30);
    expect(outcomes.count("full")).toBe(100 - stored);
    expect(told.events.filter((event) => event.startsWith("full"))).toEqual(["full true"]);
    // What was stored is a prefix: nothing slipped in after the first refusal.
    expect([...outcomes.of].filter(([, outcome]) => outcome === "stored").every(([tag]) => tag < stored)).toBe(true);
    await sleep(600);
    expect(told.events).not.toContain("full false");
    const sink = new Pulled();
    const line = bus.openPull("full", sink);
    sink.onMessage = (message) => bus.settle(message.token, "ack");
    line.ask(stored, true);
    await until(() => told.events.includes("full false"), 5_000);
    await line.takeBack();
    const again = new Outcomes();
    bus.publish("amqp._.full", NONE, [new Uint8Array(100_000)], again, 1);
    await until(() => again.of.size === 1);
    expect(again.of.get(1)).toBe("stored");
  });

  it("answers everything through kill -9: unknown or stored, held ones in order after", {
    timeout: 90_000,
  }, async () => {
    const { server, opened } = await start();
    const { bus, told } = opened;
    await bus.createCursor({ queue: "kill", filters: ["amqp._.kill"], revision: 1, queueId: 1 });
    const before = bus.incarnation;
    const outcomes = new Outcomes();
    let next = 0;
    const publish = (count: number): void => {
      for (let i = 0; i < count; i++) bus.publish("amqp._.kill", NONE, [bytes(String(next))], outcomes, next++);
    };
    publish(3_000);
    await until(() => outcomes.of.size > 500);
    publish(3_000);
    const killed = server.kill();
    publish(100);
    await killed;
    await publishingLost(opened);
    expect(told.events).toContain("away");
    expect(bus.present).toBe(false);
    expect(bus.room).toBe(false);
    // Everything that was in flight is answered by now; what comes next is held.
    const answered = outcomes.of.size;
    const firstHeld = next;
    publish(500);
    await sleep(300);
    expect(outcomes.of.size).toBe(answered);
    await server.run();
    await until(() => outcomes.of.size === next, 20_000);
    await until(() => told.events.includes("back true"));
    expect(bus.incarnation).not.toBe(before);
    expect(bus.present).toBe(true);
    expect(outcomes.twice).toBe(0);
    for (let tag = firstHeld; tag < next; tag++) expect(outcomes.of.get(tag)).toBe("stored");
    expect(outcomes.count("refused")).toBe(0);
    // Stored means stored, and the order is the order of the calls.
    const total = await stored(bus);
    const read = await readAll("kill", total);
    expect(read).toEqual([...read].sort((a, b) => a - b));
    expect(new Set(read).size).toBe(read.length);
    const present = new Set(read);
    for (const [tag, outcome] of outcomes.of) if (outcome === "stored") expect(present.has(tag)).toBe(true);
  });

  it("keeps pulls, settlements and requests going through a restart", { timeout: 60_000 }, async () => {
    const { server, opened } = await start();
    const { bus, told } = opened;
    await bus.createCursor({ queue: "on", filters: ["amqp._.on"], revision: 1, queueId: 1 });
    await fill(bus, "amqp._.on", 10);
    const sink = new Pulled();
    const line = bus.openPull("on", sink);
    line.ask(20, true);
    await until(() => sink.messages.length === 10);
    // The bus writes a cursor's state about ten times a second: what it delivered just before would be new to it.
    await sleep(500);
    await server.kill();
    await until(() => told.events.includes("away"));
    await until(() => sink.ends.length > 0);
    expect(sink.ends.every((end) => end.why === "lost")).toBe(true);
    expect(sink.ends.reduce((sum, end) => sum + end.missing, 0)).toBeLessThanOrEqual(10);
    // While it is away: settlements are kept, asks and requests wait.
    for (const message of sink.messages) bus.settle(message.token, "ack");
    line.ask(5, true);
    const state = bus.cursorState("on");
    await sleep(200);
    await server.run();
    await state;
    await until(() => told.events.some((event) => event.startsWith("back")));
    await bus.settled("on");
    expect(await bus.cursorState("on")).toMatchObject({ ackPending: 0, pending: 0 });
    await fill(bus, "amqp._.on", 5);
    await until(() => sink.messages.length === 15);
    await line.takeBack();
  });

  it("holds what the log has no leader for, and stores it in order afterwards", { timeout: 60_000 }, async () => {
    const { opened } = await start();
    const { bus, told, delivering } = opened;
    await bus.createCursor({ queue: "lead", filters: ["amqp._.lead"], revision: 1, queueId: 1 });
    const config = (await delivering.request("$JS.API.STREAM.INFO.AMQP")).json<{ config: object }>().config;
    await fill(bus, "amqp._.lead", 3);
    // No stream takes these subjects for a while: the server answers 503, as it does without a leader.
    const moved = { ...config, subjects: ["elsewhere.>"] };
    await delivering.request("$JS.API.STREAM.UPDATE.AMQP", JSON.stringify(moved));
    const outcomes = new Outcomes();
    for (let i = 3; i < 1_000; i++) bus.publish("amqp._.lead", NONE, [bytes(String(i))], outcomes, i);
    await until(() => told.events.includes("stalled true"));
    expect(bus.room).toBe(false);
    for (let i = 1_000; i < 1_500; i++) bus.publish("amqp._.lead", NONE, [bytes(String(i))], outcomes, i);
    await sleep(1_500);
    expect(outcomes.of.size).toBe(0);
    await delivering.request("$JS.API.STREAM.UPDATE.AMQP", JSON.stringify(config));
    await until(() => outcomes.of.size === 1_497);
    expect(outcomes.count("stored")).toBe(1_497);
    expect(told.events.filter((event) => event.startsWith("stalled"))).toEqual(["stalled true", "stalled false"]);
    await until(() => bus.room);
    const read = await readAll("lead", 1_500);
    expect(read).toEqual(read.map((_, i) => i));
  });

  it("refuses what no leader took within the bus timeout, then lets publishers try again", {
    timeout: 60_000,
  }, async () => {
    const { opened } = await start({ busTimeout: 1_500 });
    const { bus, told, delivering } = opened;
    const config = (await delivering.request("$JS.API.STREAM.INFO.AMQP")).json<{ config: object }>().config;
    await delivering.request("$JS.API.STREAM.UPDATE.AMQP", JSON.stringify({ ...config, subjects: ["elsewhere.>"] }));
    const outcomes = new Outcomes();
    for (let i = 0; i < 10; i++) bus.publish("amqp._.x", NONE, [], outcomes, i);
    await until(() => outcomes.count("refused") === 10, 6_000);
    await until(() => bus.room);
    expect(told.events).toEqual(["stalled true", "stalled false", "room"]);
    await delivering.request("$JS.API.STREAM.UPDATE.AMQP", JSON.stringify(config));
    bus.publish("amqp._.x", NONE, [], outcomes, 10);
    await until(() => outcomes.of.size === 11);
    expect(outcomes.of.get(10)).toBe("stored");
  });

  it("serves in a JetStream domain", async () => {
    const { bus } = (await start({ domain: "hub" }, "hub")).opened;
    await bus.createCursor({ queue: "domain", filters: ["amqp._.domain"], revision: 1, queueId: 1 });
    await fill(bus, "amqp._.domain", 3);
    expect(await readAll("domain", 3)).toEqual([0, 1, 2]);
    await bus.settled("domain");
    expect(await bus.cursorState("domain")).toMatchObject({ ackPending: 3 });
  });

  it("refuses what it held when the bus timeout is over", { timeout: 60_000 }, async () => {
    const { server, opened } = await start({ busTimeout: 1_500 });
    const { bus } = opened;
    await server.kill();
    await publishingLost(opened);
    const outcomes = new Outcomes();
    for (let i = 0; i < 10; i++) bus.publish("amqp._.x", NONE, [], outcomes, i);
    await expect(bus.lastSequence()).rejects.toMatchObject({ name: "BusError" });
    await until(() => outcomes.of.size === 10, 5_000);
    expect(outcomes.count("refused")).toBe(10);
  });

  it("answers unknown what the bus never answers", { timeout: 60_000 }, async () => {
    const { server, opened } = await start({ busTimeout: 1_000 });
    const { bus } = opened;
    const outcomes = new Outcomes();
    server.freeze();
    await sleep(100); // the signal takes a moment to reach every thread of a busy machine
    bus.publish("amqp._.x", NONE, [], outcomes, 1);
    await until(() => outcomes.of.size === 1, 6_000);
    server.thaw();
    expect(outcomes.of.get(1)).toBe("unknown");
    await sleep(200);
    expect(outcomes.twice).toBe(0);
  });
});
