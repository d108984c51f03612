// The end of a torture run: empties what is left through an ordinary client, deletes everything, and looks at what the
// bus still keeps. Separate from the consumers, whose work is to be unpredictable.
import { setTimeout as sleep } from "node:timers/promises";
import { type Bus, openBus } from "../crosswire/bus.ts";
import { type Leftovers, now } from "./history.ts";
import { idOf } from "./publisher.ts";
import type { Random } from "./random.ts";
import { deleteExchange, deleteQueue } from "./topologist.ts";
import { EXCHANGES, QUEUES, type World } from "./world.ts";

/** What was in nobody's hands comes again within this: HIP-1326 as this project reads it, a dead replica's 15 s. */
const HEALED = 20_000;

/** Consumes every queue until the bus says that it is empty, and notes which ones are. */
export async function drain(world: World, random: Random, natsUrl: string): Promise<void> {
  const bus = await openBus(natsUrl);
  try {
    await Promise.all(QUEUES.map((queue) => drainQueue(world, random, bus, queue)));
  } finally {
    await bus.close();
  }
}

async function drainQueue(world: World, random: Random, bus: Bus, queue: string): Promise<void> {
  const { history } = world;
  let began = 0;
  const peer = await world.connect(random, {
    delivered: (_channel, { deliveryTag, redelivered, exchange, routingKey }, body) => {
      const id = idOf(body) ?? "?";
      const settlement = "ack";
      const at = now();
      history.deliveries.push({
        id,
        queue,
        exchange,
        routingKey,
        redelivered,
        gateway: peer?.gateway ?? -1,
        consumer: `drain ${queue}`,
        consumerSent: began,
        at,
        settlement,
        settledAt: at,
      });
      peer?.send(1, "basic.ack", { deliveryTag });
    },
  });
  if (peer === undefined) return;
  await peer.ask(1, "channel.open", {});
  await peer.ask(1, "basic.qos", { prefetchCount: 200 });
  began = now();
  const { answer } = await world.operate(peer, "consume", { queue }, () =>
    peer.ask(1, "basic.consume", { queue, consumerTag: "t" }),
  );
  if (answer.kind === "ok") {
    const end = now() + HEALED + 40_000;
    let heard = history.deliveries.length;
    let progress = now();
    for (;;) {
      await sleep(250);
      const info = await bus.manager.consumers.info("AMQP", queue);
      if (info.num_pending === 0 && info.num_ack_pending === 0) {
        history.drained.set(queue, now());
        break;
      }
      if (history.deliveries.length !== heard) progress = now();
      heard = history.deliveries.length;
      if (now() > end || now() - progress > HEALED) {
        world.complain(
          `'${queue}' does not drain: ${info.num_pending} pending, ${info.num_ack_pending} out, and nothing comes for ${Math.round(now() - progress)} ms`,
        );
        break;
      }
    }
  }
  peer.destroy();
}

/** Deletes every queue and exchange, and waits a little until the bus keeps nothing. */
export async function deleteAll(world: World, random: Random, natsUrl: string, live: number): Promise<void> {
  const peer = await world.connect(random, {});
  if (peer === undefined) return;
  await peer.ask(1, "channel.open", {});
  for (const queue of QUEUES) await deleteQueue(world, peer, queue);
  for (const exchange of Object.keys(EXCHANGES)) await deleteExchange(world, peer, exchange);
  peer.destroy();
  const bus = await openBus(natsUrl);
  try {
    for (let looks = 0; looks < 60; looks++) {
      world.history.leftovers = await look(bus, live);
      const { messages, consumers, keys, leases } = world.history.leftovers;
      if (messages === 0 && consumers.length === 0 && keys.length === 0 && leases === live) break;
      await sleep(500);
    }
  } finally {
    await bus.close();
  }
}

async function look(bus: Bus, live: number): Promise<Leftovers> {
  const keys: string[] = [];
  for (const key of await bus.keys("")) if (await isThere(bus, key)) keys.push(key);
  return {
    messages: await bus.messages(),
    consumers: await bus.consumers(),
    keys: keys.filter((key) => !key.startsWith("r.") && !["fleet", "leader"].includes(key) && !isPredeclared(key)),
    leases: keys.filter((key) => key.startsWith("r.")).length,
    live,
  };
}

/** The client lists keys that have expired as well: what stands there is the bus's marker. */
async function isThere(bus: Bus, key: string): Promise<boolean> {
  const found = await bus.manager.streams.getMessage("KV_amqp", { last_by_subj: `$KV.amqp.${key}` });
  return found !== null && !found.header.has("Nats-Marker-Reason") && !found.header.has("KV-Operation");
}

/** amq.direct and the like are there from the start. */
function isPredeclared(key: string): boolean {
  return key.startsWith("x.amq");
}
