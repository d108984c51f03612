// Two workers of one gateway: clients connect to one port and meet one broker, whichever process serves them.
import { type ChannelModel, connect as connectTo } from "amqplib";
import { afterAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { drain, publish, Taker } from "./fleet.ts";

afterAll(releaseAll);

async function connect(gateway: Gateway): Promise<ChannelModel> {
  const connection = await connectTo(gateway.url, { noDelay: true });
  connection.on("error", () => undefined);
  return connection;
}

/** How many connections each worker has opened. */
function opened(gateway: Gateway): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { msg, worker } of gateway.lines)
    if (msg === "connection opened") counts[String(worker)] = (counts[String(worker)] ?? 0) + 1;
  return counts;
}

describe("--workers 2", () => {
  it("is one broker on one port, also while a worker is killed and replaced", async () => {
    const gateway = await startGateway({ args: ["--workers", "2"] });
    expect(gateway.lines.filter(({ msg }) => msg.startsWith("serving"))).toMatchObject([{ workers: 2 }]);
    const connections: ChannelModel[] = [];
    for (let n = 0; n < 4; n++) connections.push(await connect(gateway));
    await expect.poll(() => opened(gateway)).toEqual({ 1: 2, 2: 2 });
    const channels = await Promise.all(connections.map((connection) => connection.createConfirmChannel()));
    for (const channel of channels) channel.on("error", () => undefined);
    const [first, ...others] = channels;
    if (first === undefined) throw new Error("four channels");
    await first.assertExchange("x", "fanout");
    await first.assertQueue("q");
    for (const channel of others) {
      await channel.checkQueue("q");
      await channel.bindQueue("q", "x", "");
      expect(await publish(channel, "x", "", "routed")).toBe(true);
    }
    expect(await drain(first, "q")).toEqual(["routed", "routed", "routed"]);

    const takers = await Promise.all(channels.map((channel) => channel.prefetch(5).then(() => Taker.on(channel, "q"))));
    expect(await first.checkQueue("q")).toMatchObject({ consumerCount: 4 });
    for (let n = 0; n < 20; n++) await publish(first, "", "q", `${n}`);
    await expect.poll(() => takers.map(({ messages }) => messages.length)).toEqual([5, 5, 5, 5]);
    const survivors = new Set(connections);
    for (const connection of connections) connection.on("close", () => survivors.delete(connection));
    const serving = gateway.lines.filter(({ msg }) => /^worker \d serves$/.test(msg));
    process.kill(Number(serving[1]?.pid), "SIGKILL");
    await expect.poll(() => survivors.size).toBe(2);
    const late = await connect(gateway);
    const all = await Taker.on(await late.createChannel(), "q");
    await expect.poll(() => all.messages.length, { timeout: 15_000 }).toBe(10);
    await expect
      .poll(() => gateway.lines.some(({ msg }) => msg === "worker 2 serves again"), { timeout: 15_000 })
      .toBe(true);
    for (let n = 0; n < 4; n++) await (await connect(gateway)).createChannel();
    await expect.poll(() => opened(gateway)["2"]).toBeGreaterThan(2);
    await gateway.stop();
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
  });
});
