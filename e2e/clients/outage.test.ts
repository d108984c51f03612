// A bus that goes away under our gateway and comes back: clients wait, or are told, and nothing confirmed is lost.
// It starts a gateway and a nats-server of its own; a reference broker has no part in it.
import { LEADER_KEY, Lease, openBucket } from "@amqp/topology";
import { connect } from "@nats-io/transport-node";
import { connect as connectTo } from "amqplib";
import { afterEach, describe, expect, it } from "vitest";
import { failToStart, startGateway } from "../harness/gateway.ts";
import { startNats } from "../harness/nats-server.ts";
import { releaseAll } from "../harness/owned.ts";
import { isReference } from "../harness/reference.ts";

afterEach(releaseAll);

/** Holds the leader's lease as a replica called `mute` that answers nobody; resolves to how it ends. */
async function muteLeader(servers: string): Promise<() => Promise<void>> {
  const connection = await connect({ servers });
  const bucket = await openBucket(connection, { name: "amqp" });
  const lease = await Lease.take(bucket, LEADER_KEY, { replica: "mute" }, { lapsed: () => undefined });
  return async () => {
    if (lease !== "conflict") await lease.release();
    await connection.close();
  };
}

describe.runIf(!isReference)("our gateway over a nats-server of its user's", () => {
  it("goes on after the bus was killed and came back, and what was confirmed is there", async () => {
    const nats = await startNats();
    const gateway = await startGateway({ args: ["--nats-url", nats.url] });
    expect(gateway.natsUrl).toBe(nats.url);
    const connection = await connectTo(gateway.url, { noDelay: true });
    connection.on("error", () => undefined);
    const channel = await connection.createConfirmChannel();
    await channel.assertQueue("work");
    const confirmed: string[] = [];
    const publish = async (text: string): Promise<void> => {
      await new Promise<void>((resolve) => {
        channel.sendToQueue("work", Buffer.from(text), {}, (error) => {
          if (error === null) confirmed.push(text);
          resolve();
        });
      });
    };
    for (let i = 0; i < 100; i++) await publish(`before ${i}`);
    await nats.kill();
    const during = publish("during"); // confirmed or refused, but answered
    await nats.restart();
    await during;
    for (let i = 0; i < 100; i++) await publish(`after ${i}`);
    expect(confirmed.length).toBeGreaterThanOrEqual(200);

    const seen: Set<string> = new Set();
    await channel.consume("work", (message) => {
      if (message === null) return;
      seen.add(message.content.toString());
      channel.ack(message);
    });
    await expect.poll(() => confirmed.filter((text) => !seen.has(text)), { timeout: 20_000 }).toEqual([]);
    await connection.close();
    await gateway.stop();
    await nats.stop();
  }, 60_000);

  it("does not serve over a bus that is not there, and says what to do", async () => {
    const nats = await startNats();
    await nats.kill();
    const { code, lines } = await failToStart({ args: ["--nats-url", nats.url] });
    expect(code).toBe(1);
    expect(lines.some(({ msg }) => msg.includes(`127.0.0.1:${nats.port}`))).toBe(true);
  }, 60_000);

  it("does not serve where whoever leads never answers, and says in one line who that is", async () => {
    const nats = await startNats();
    const end = await muteLeader(nats.url);
    const { code, lines } = await failToStart({ args: ["--nats-url", nats.url, "--bus-timeout", "1"] });
    expect(code).toBe(1);
    const fatal = lines.filter(({ level }) => level === "fatal");
    expect(fatal).toHaveLength(1);
    expect(fatal[0]?.msg).toMatch(/replica mute holds the topology leader's lease, and does not answer: see the log/);
    expect(fatal[0]?.err).toBeUndefined();
    expect(lines.filter(({ level, msg }) => level === "warn" && msg.includes("connection lost"))).toEqual([]);
    await end();
    await nats.stop();
  }, 60_000);

  it("stops at a signal while it waits at boot", async () => {
    const nats = await startNats();
    const end = await muteLeader(nats.url);
    const begun = performance.now();
    const { code, lines } = await failToStart({ args: ["--nats-url", nats.url], signalAfter: 4_000 });
    expect(code).toBe(0);
    expect(performance.now() - begun).toBeLessThan(12_000);
    expect(lines.filter(({ level }) => level === "fatal")).toEqual([]);
    await end();
    await nats.stop();
  }, 60_000);
});
