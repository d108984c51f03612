// An actor that purges. It alone consumes its queue, so that the laws know when nobody holds anything of it: consume for a
// while, leave, wait, purge, sometimes twice at once. Now and then it purges a queue that others consume. Separate from
// the topologists, who change what nobody's messages depend on.

import { work } from "./consumer.ts";
import { Consuming, WAYS_IN_ORDER } from "./consuming.ts";
import { now } from "./history.ts";
import type { Random } from "./random.ts";
import { BUSY_PURGED_QUEUE, type World } from "./world.ts";

export async function purger(world: World, random: Random, name: string, queue: string): Promise<void> {
  for (let round = 0; !world.isStopping; round++) {
    if (random.chance(0.5)) await consumeAWhile(world, random, `${name}/${round}`, queue);
    await world.pause(random.integer(0, 5_000));
    const purges = [purge(world, random, queue)];
    if (random.chance(0.15)) purges.push(purge(world, random, queue));
    if (random.chance(0.15)) purges.push(purge(world, random, BUSY_PURGED_QUEUE));
    await Promise.all(purges);
  }
}

async function consumeAWhile(world: World, random: Random, name: string, queue: string): Promise<void> {
  const consuming = new Consuming(world, name, queue, false);
  const peer = await world.connect(random, consuming);
  if (peer === undefined) return;
  await peer.ask(1, "channel.open", {});
  const begun = await consuming.begin(peer, random.pick([1, 20, 100]));
  const end = now() + random.integer(200, 4_000);
  const manner = { discard: 0.05, requeue: random.pick([0, 0.3]) };
  const crashes = random.chance(0.1);
  const holding = random.chance(0.3);
  if (begun.kind === "ok") await work(world, peer, random, { consuming, manner, end });
  // What a client holds while its queue is purged is spared.
  if (holding && consuming.isOpen) await purge(world, random, queue);
  await consuming.leave(crashes ? "crash" : random.pick(WAYS_IN_ORDER));
}

async function purge(world: World, random: Random, queue: string): Promise<void> {
  const peer = await world.connect(random, {});
  if (peer === undefined) return;
  await peer.ask(1, "channel.open", {});
  const { operation, answer } = await world.operate(peer, "purge", { queue }, () =>
    peer.ask(1, "queue.purge", { queue }),
  );
  if (answer.kind === "ok") operation.messages = Number(answer.fields.messageCount);
  peer.destroy();
}
