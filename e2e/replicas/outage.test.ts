// The bus goes away under two replicas and comes back: both go on, nothing confirmed is missing, and where it stays away
// the clients are told and the ports closed. design §5, §7; HIP §7.
import { connect as connectTcp } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConfirmChannel } from "amqplib";
import { afterEach, describe, expect, it } from "vitest";
import { releaseAll } from "../harness/owned.ts";
import { drain, Fleet, publish, Taker } from "./fleet.ts";

afterEach(releaseAll);

/** Publishes until told to end, a hundred unconfirmed at most; resolves to what was confirmed, when all is answered. */
async function publishUntil(channel: ConfirmChannel, name: string, stop: AbortSignal): Promise<string[]> {
  const confirmed: string[] = [];
  let [sent, answered] = [0, 0];
  while (!stop.aborted) {
    while (sent - answered < 100) {
      const text = `${name}-${sent++}`;
      channel.sendToQueue("q", Buffer.from(text), {}, (error: unknown) => {
        answered++;
        if (!error) confirmed.push(text);
      });
    }
    await sleep(5);
  }
  await expect.poll(() => answered, { timeout: 30_000 }).toBe(sent);
  return confirmed;
}

/** What a readiness check asks. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, "127.0.0.1");
    const answer = (open: boolean) => () => {
      socket.destroy();
      resolve(open);
    };
    socket.once("connect", answer(true));
    socket.once("error", answer(false));
  });
}

describe("a nats-server killed and restarted under two replicas", () => {
  it("costs nothing that was confirmed; publishers are told to wait, consumers and the topology go on", async () => {
    const fleet = await Fleet.start(2);
    const told: string[] = [];
    const stop = new AbortController();
    const got = new Set<string>();
    await (await fleet.channel(0)).assertQueue("q");
    const publishing: Promise<string[]>[] = [];
    for (const number of [0, 1]) {
      const connection = await fleet.connect(number);
      for (const word of ["blocked", "unblocked"] as const) connection.on(word, () => told.push(`${word} ${number}`));
      publishing.push(publishUntil(await connection.createConfirmChannel(), `p${number}`, stop.signal));
      const consumer = await fleet.channel(number);
      await consumer.prefetch(50);
      await Taker.on(consumer, "q", {
        each: (message) => {
          got.add(message.content.toString());
          consumer.ack(message);
        },
      });
    }
    await sleep(1000);
    await fleet.nats.kill();
    await sleep(2000);
    await fleet.nats.restart();
    await sleep(2000);
    // The watches are there again: what one declares the other one has.
    const [a, b] = [await fleet.channel(0), await fleet.channel(1)];
    await a.assertQueue("after-a");
    expect(await b.checkQueue("after-a")).toMatchObject({ queue: "after-a" });
    await b.assertQueue("after-b");
    expect(await a.checkQueue("after-b")).toMatchObject({ queue: "after-b" });
    stop.abort();
    const confirmed = (await Promise.all(publishing)).flat();
    expect(confirmed.length).toBeGreaterThan(400);
    await expect.poll(() => confirmed.filter((text) => !got.has(text)), { timeout: 15_000 }).toEqual([]);
    expect(told.toSorted()).toEqual(["blocked 0", "blocked 1", "unblocked 0", "unblocked 1"]);
    await expect.poll(async () => (await a.checkQueue("q")).messageCount, { timeout: 10_000 }).toBe(0);
    await fleet.disconnect();
  });
});

describe("a bus that stays away for longer than AMQP_BUS_TIMEOUT", () => {
  it("has the connections closed with 320 and the ports closed, until it is back", async () => {
    const fleet = await Fleet.start(2, { AMQP_BUS_TIMEOUT: "2" });
    const ports = fleet.replicas.map(({ port }) => port);
    const publisher = await fleet.confirms(0);
    await publisher.assertQueue("q");
    await publish(publisher, "", "q", "kept");
    const reasons: string[] = [];
    // For amqplib 320 is an operator's close, not an error.
    for (const number of [0, 1]) {
      const connection = await fleet.connect(number);
      connection.on("close", (reason?: Error) => reasons.push(reason?.message ?? "no reason"));
    }
    const since = performance.now();
    await fleet.nats.kill();
    await expect.poll(() => reasons, { timeout: 6000 }).toHaveLength(2);
    expect(performance.now() - since).toBeGreaterThan(1900);
    for (const reason of reasons) expect(reason).toMatch(/320.*the bus is away for too long/);
    expect(await Promise.all(ports.map(accepts))).toEqual([false, false]);
    await fleet.nats.restart();
    await expect.poll(() => Promise.all(ports.map(accepts)), { timeout: 10_000 }).toEqual([true, true]);
    expect(await drain(await fleet.channel(1), "q")).toEqual(["kept"]);
    await fleet.disconnect();
  });
});
