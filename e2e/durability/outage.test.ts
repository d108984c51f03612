// The bus goes away under load and comes back: publishers that asked for it are told (connection.blocked), every confirm
// is true, consumers go on without reconnecting, and nothing that was confirmed is missing. design §5, §7.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { startGateway } from "../harness/gateway.ts";
import { type NatsServer, startNats } from "../harness/nats-server.ts";
import { releaseAll } from "../harness/owned.ts";
import { AmqpSocket } from "../harness/socket.ts";
import { addressOf, declare, openPublisher } from "./load.ts";

afterAll(releaseAll);

/** How long what was confirmed may take, on a machine that is busy: milliseconds. */
const DRAINED = 45_000;

/** What a publisher has seen so far. */
interface Seen {
  readonly acked: Set<number>;
  readonly nacked: Set<number>;
  blocked: number;
  unblocked: number;
}

/** Publishes numbers, a few hundred unconfirmed at most, until told to stop; then waits until each is answered. */
async function publishUntil(socket: AmqpSocket, queue: string, stop: AbortSignal): Promise<Seen> {
  const seen: Seen = { acked: new Set(), nacked: new Set(), blocked: 0, unblocked: 0 };
  let sent = 0;
  let answered = 0n;
  while (!stop.aborted || answered < BigInt(sent)) {
    while (!stop.aborted && sent - Number(answered) < 300) socket.publish(1, { routingKey: queue }, `${sent++}`);
    const received = await socket.next(45_000);
    if (received.kind !== "method") throw new Error(`the publisher got ${received.kind}`);
    const { name, fields } = received.method;
    if (name === "connection.blocked") seen.blocked++;
    else if (name === "connection.unblocked") seen.unblocked++;
    else if (name === "basic.ack" || name === "basic.nack") {
      expect(fields.deliveryTag > answered, "confirms come in order, each tag once").toBe(true);
      for (let tag = answered + 1n; tag <= fields.deliveryTag; tag++) {
        (name === "basic.ack" ? seen.acked : seen.nacked).add(Number(tag) - 1);
      }
      answered = fields.deliveryTag;
    } else throw new Error(`the publisher got ${name}`);
  }
  return seen;
}

/** Consumes and acks on one socket that is never opened again; ends when told. */
async function consumeUntil(socket: AmqpSocket, queue: string, got: Set<number>, stop: AbortSignal): Promise<void> {
  socket.send(1, "basic.qos", { prefetchCount: 100 });
  await socket.expect("basic.qos-ok");
  socket.send(1, "basic.consume", { queue, consumerTag: "t" });
  await socket.expect("basic.consume-ok");
  while (!stop.aborted) {
    const received = await socket.next(500).catch(() => undefined);
    if (received === undefined) continue;
    if (received.kind !== "method") throw new Error(`the consumer got ${received.kind}`);
    const { name, fields } = received.method;
    if (name === "connection.blocked" || name === "connection.unblocked") continue;
    if (name !== "basic.deliver") throw new Error(`the consumer got ${name}`);
    got.add(Number((await socket.expectContent()).body.toString()));
    socket.send(1, "basic.ack", { deliveryTag: fields.deliveryTag });
  }
}

async function loadedWhile(nats: NatsServer, disturb: () => Promise<void>): Promise<{ seen: Seen; got: Set<number> }> {
  const gateway = await startGateway({ env: { NATS_URL: nats.url } });
  const publisher = await openPublisher(gateway);
  const consumer = await AmqpSocket.open(addressOf(gateway));
  await consumer.channel(1);
  await declare(publisher, "q");
  const [publishing, consuming] = [new AbortController(), new AbortController()];
  const published = publishUntil(publisher, "q", publishing.signal);
  const got = new Set<number>();
  const consumed = consumeUntil(consumer, "q", got, consuming.signal);
  await sleep(1_000);
  await disturb();
  await sleep(1_500);
  publishing.abort();
  const seen = await published;
  // Whatever was confirmed arrives on the consumer's one socket.
  for (let waited = 0; waited < DRAINED && missing({ seen, got }).length > 0; waited += 100) await sleep(100);
  consuming.abort();
  await consumed;
  for (const socket of [publisher, consumer]) socket.destroy();
  await gateway.stop();
  return { seen, got };
}

function missing({ seen, got }: { seen: Seen; got: Set<number> }): number[] {
  return [...seen.acked].filter((number) => !got.has(number));
}

describe("a nats-server that is killed and restarted under load", () => {
  it("costs no confirmed message, blocks and unblocks publishers, and consumers go on", async () => {
    const nats = await startNats();
    const { seen, got } = await loadedWhile(nats, async () => {
      await nats.kill();
      await sleep(2_000);
      await nats.restart();
    });
    expect(missing({ seen, got })).toEqual([]);
    expect(seen.acked.size).toBeGreaterThan(600);
    expect([seen.blocked, seen.unblocked]).toEqual([1, 1]);
    await nats.stop();
  }, 120_000);

  it("for a moment only is ridden out likewise", async () => {
    const nats = await startNats();
    const result = await loadedWhile(nats, async () => {
      for (let round = 0; round < 3; round++) {
        await nats.restart();
        await sleep(1_500);
      }
    });
    expect(missing(result)).toEqual([]);
    expect(result.seen.blocked).toBe(result.seen.unblocked);
    await nats.stop();
  }, 120_000);
});

describe("a client that does not know connection.blocked", () => {
  it("is never sent it", async () => {
    const nats = await startNats();
    const gateway = await startGateway({ env: { NATS_URL: nats.url } });
    const socket = await AmqpSocket.open(addressOf(gateway), { capabilities: {} });
    await socket.channel(1);
    await nats.kill();
    await sleep(1_000);
    await nats.restart();
    await sleep(2_000);
    expect(await socket.collect(100)).toEqual([]);
    socket.destroy();
    await gateway.stop();
    await nats.stop();
  }, 60_000);
});
