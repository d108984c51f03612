// An actor that consumes: on one queue for a while, with some prefetch, settling each delivery after a time and in a
// way that its seed decides, then leaving in one of four ways. After settling it asks a question that waits for
// settlements, so that the laws know which ones the bus has surely processed. Separate from the drain, which only empties.
import { type Delivery, now, type Settlement } from "./history.ts";
import type { Peer } from "./peer.ts";
import { idOf } from "./publisher.ts";
import type { Random } from "./random.ts";
import { QUEUES, type World } from "./world.ts";

/** How often settlements are made sure of, milliseconds. */
const SYNC = 300;

/** What is held on the one channel: tag → delivery. */
type Held = Map<bigint, Delivery>;

export async function consumer(world: World, random: Random, name: string): Promise<void> {
  for (let life = 0; !world.isStopping; life++) {
    const held: Held = new Map();
    const consumerName = `${name}/${life}`;
    const queue = random.pick(QUEUES);
    let began = 0;
    let isOpen = true;
    const peer: Peer | undefined = await world.connect(random, {
      delivered: (_channel, { deliveryTag, redelivered, exchange, routingKey }, body) => {
        const id = idOf(body);
        if (id === undefined) world.complain(`a body from '${queue}' is not what was published`);
        const delivery: Delivery = {
          id: id ?? "?",
          queue,
          exchange,
          routingKey,
          redelivered,
          gateway: peer?.gateway ?? -1,
          consumer: consumerName,
          consumerSent: began,
          at: now(),
        };
        world.history.deliveries.push(delivery);
        held.set(deliveryTag, delivery);
      },
      cancelled: () => {
        isOpen = false;
      },
      channelClosed: (_channel, code, text) => {
        isOpen = false;
        world.complain(`a consumer's channel was closed: ${code} ${text}`);
      },
    });
    if (peer === undefined) return;
    const opened = await peer.ask(1, "channel.open", {});
    if (opened.kind === "ok") await peer.ask(1, "basic.qos", { prefetchCount: random.pick([1, 5, 20, 100]) });
    began = now();
    const { answer } = await world.operate(peer, "consume", { queue }, () =>
      peer.ask(1, "basic.consume", { queue, consumerTag: "t" }),
    );
    if (answer.kind === "ok") {
      const end = now() + random.integer(500, 12_000);
      const manner = { discard: random.pick([0, 0.02, 0.1]), requeue: random.pick([0, 0.05, 0.3]) };
      while (!world.isStopping && peer.isOpen && isOpen && now() < end) {
        await world.pause(random.integer(0, SYNC));
        const settled = settleSome(peer, random, held, manner);
        if (settled.length > 0 && !(await makeSure(world, peer, queue, settled))) break;
      }
      await leave(peer, random, held, isOpen);
    } else await world.pause(200);
    peer.destroy();
  }
}

/** Settles part of what is held; returns what was settled for good. */
function settleSome(
  peer: Peer,
  random: Random,
  held: Held,
  manner: { readonly discard: number; readonly requeue: number },
): Delivery[] {
  const settled: Delivery[] = [];
  const end = (tag: bigint, how: Settlement): void => {
    const delivery = held.get(tag);
    if (delivery === undefined) return;
    held.delete(tag);
    delivery.settlement = how;
    delivery.settledAt = now();
    if (how !== "requeue") settled.push(delivery);
  };
  const tags = [...held.keys()];
  if (tags.length > 3 && random.chance(0.3)) {
    // All at once up to one in the middle, as `multiple` says.
    const at = random.integer(0, tags.length - 1);
    const deliveryTag = tags[at] ?? 0n;
    for (const tag of tags.slice(0, at + 1)) end(tag, "ack");
    peer.send(1, "basic.ack", { deliveryTag, multiple: true });
    return settled;
  }
  for (const deliveryTag of tags) {
    if (random.chance(0.1)) continue;
    const draw = random.next();
    const how = draw < manner.discard ? "discard" : draw < manner.discard + manner.requeue ? "requeue" : "ack";
    end(deliveryTag, how);
    if (how === "ack") peer.send(1, "basic.ack", { deliveryTag });
    else if (random.chance(0.5)) peer.send(1, "basic.nack", { deliveryTag, requeue: how === "requeue" });
    else peer.send(1, "basic.reject", { deliveryTag, requeue: how === "requeue" });
  }
  return settled;
}

/** design §5: a declare waits until the bus has processed what this channel settled. False: the channel is no more. */
async function makeSure(world: World, peer: Peer, queue: string, settled: readonly Delivery[]): Promise<boolean> {
  const { answer } = await world.operate(peer, "passive", { queue }, () =>
    peer.ask(1, "queue.declare", { queue, passive: true }),
  );
  if (answer.kind !== "ok") return false;
  const syncedAt = now();
  for (const delivery of settled) delivery.syncedAt = syncedAt;
  return true;
}

/** basic.cancel and then settling the rest, channel.close, connection.close, or nothing at all. */
async function leave(peer: Peer, random: Random, held: Held, isOpen: boolean): Promise<void> {
  const way = random.pick(["cancel", "channel", "connection", "crash"] as const);
  if (!peer.isOpen || !isOpen || way === "crash") return;
  if (way === "cancel") {
    await asked(peer.ask(1, "basic.cancel", { consumerTag: "t" }));
    for (const [deliveryTag, delivery] of held) {
      delivery.settlement = "ack";
      delivery.settledAt = now();
      peer.send(1, "basic.ack", { deliveryTag });
    }
  }
  if (way !== "connection") await asked(peer.ask(1, "channel.close", { replyCode: 200 }));
  await asked(peer.ask(0, "connection.close", { replyCode: 200 }));
}

/** The answer, or half a minute. */
async function asked(answer: Promise<unknown>): Promise<void> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), 30_000);
  await Promise.race([
    answer,
    new Promise<void>((resolve) => late.signal.addEventListener("abort", () => resolve(), { once: true })),
  ]);
  clearTimeout(timer);
}
