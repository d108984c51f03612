// An actor that consumes: on one queue for a while, with some prefetch, settling each delivery after a time and in a
// way that its seed decides, then leaving in one of four ways. After settling it asks a question that waits for
// settlements, so that the laws know which ones the bus has surely processed. Separate from the drain, which only empties.
import { Consuming, WAYS } from "./consuming.ts";
import { now, type Settlement } from "./history.ts";
import type { Peer } from "./peer.ts";
import type { Random } from "./random.ts";
import { CONSUMED_QUEUES, type World } from "./world.ts";

/** How often settlements are made sure of, milliseconds. */
const SYNC = 300;

/** How often each of the two is chosen; the rest is acknowledged. */
export interface Manner {
  readonly discard: number;
  readonly requeue: number;
}

export async function consumer(world: World, random: Random, name: string): Promise<void> {
  for (let life = 0; !world.isStopping; life++) {
    const consuming = new Consuming(world, `${name}/${life}`, random.pick(CONSUMED_QUEUES), false);
    const peer = await world.connect(random, consuming);
    if (peer === undefined) return;
    await peer.ask(1, "channel.open", {});
    const begun = await consuming.begin(peer, random.pick([1, 5, 20, 100]));
    if (begun.kind === "ok") {
      const end = now() + random.integer(500, 12_000);
      const manner = { discard: random.pick([0, 0.02, 0.1]), requeue: random.pick([0, 0.05, 0.3]) };
      await work(world, peer, random, { consuming, manner, end });
    } else await world.pause(200);
    await consuming.leave(random.pick(WAYS));
  }
}

/** Settles what comes until `end`, or until nothing can come any more. */
export async function work(
  world: World,
  peer: Peer,
  random: Random,
  { consuming, manner, end }: { readonly consuming: Consuming; readonly manner: Manner; readonly end: number },
): Promise<void> {
  while (!world.isStopping && consuming.isOpen && now() < end) {
    await world.pause(random.integer(0, SYNC));
    settleSome(peer, random, consuming, manner);
    if (!(await consuming.makeSure())) break;
  }
}

/** Settles part of what is held. */
function settleSome(peer: Peer, random: Random, consuming: Consuming, manner: Manner): void {
  const tags = [...consuming.held.keys()];
  if (tags.length > 3 && random.chance(0.3)) {
    // All at once up to one in the middle, as `multiple` says.
    const at = random.integer(0, tags.length - 1);
    const deliveryTag = tags[at] ?? 0n;
    for (const tag of tags.slice(0, at + 1)) consuming.settle(tag, "ack");
    peer.send(1, "basic.ack", { deliveryTag, multiple: true });
    return;
  }
  for (const deliveryTag of tags) {
    if (random.chance(0.1)) continue;
    const draw = random.next();
    const how: Exclude<Settlement, "sent"> =
      draw < manner.discard ? "discard" : draw < manner.discard + manner.requeue ? "requeue" : "ack";
    consuming.settle(deliveryTag, how);
    if (how === "ack") peer.send(1, "basic.ack", { deliveryTag });
    else if (random.chance(0.5)) peer.send(1, "basic.nack", { deliveryTag, requeue: how === "requeue" });
    else peer.send(1, "basic.reject", { deliveryTag, requeue: how === "requeue" });
  }
}
