// An actor that owns an exclusive queue for a while, server-named or under a name for which others contend: it consumes it,
// while strangers knock on any gateway, and ends by closing, deleting or crashing; then it is watched until the queue is
// gone. Separate from the other consumers because its queue lives and dies with its connection.

import { work } from "./consumer.ts";
import { Consuming, WAYS } from "./consuming.ts";
import { now, type Ownership } from "./history.ts";
import type { Answer, Peer, PeerListener } from "./peer.ts";
import type { Random } from "./random.ts";
import { CHURNED_EXCHANGE, EXCHANGES, OWNED_NAMES, type World } from "./world.ts";

const LASTING_EXCHANGES: readonly string[] = Object.keys(EXCHANGES).filter((name) => name !== CHURNED_EXCHANGE);
/** How long somebody looks whether the queue has gone. */
const WATCHED = 40_000;

export async function owner(world: World, random: Random, name: string): Promise<void> {
  for (let round = 0; !world.isStopping; round++) {
    const who = `${name}/${round}`;
    const listener: PeerListener = {};
    const peer = await world.connect(random, listener);
    if (peer === undefined) return;
    const ownership = await declare(world, peer, random.chance(0.4) ? "" : random.pick(OWNED_NAMES), who);
    if (ownership === undefined) {
      peer.destroy();
      await world.pause(random.integer(100, 1_500));
      continue;
    }
    if (ownership.answered !== undefined) {
      const consuming = new Consuming(world, who, ownership.queue, random.chance(0.5));
      listener.delivered = (...what) => consuming.delivered(...what);
      listener.cancelled = () => consuming.cancelled();
      listener.channelClosed = (...what) => consuming.channelClosed(...what);
      await own(world, peer, random, ownership, consuming);
    }
    await watch(world, random, ownership);
  }
}

/** Undefined: another one has it, or nobody knows its name. */
async function declare(world: World, peer: Peer, queue: string, owner: string): Promise<Ownership | undefined> {
  await peer.ask(1, "channel.open", {});
  const { operation, answer } = await world.operate(peer, "declare", { queue, asker: owner }, () =>
    peer.ask(1, "queue.declare", { queue, exclusive: true }),
  );
  if (answer.kind === "ok") operation.queue = String(answer.fields.queue);
  const { sent, answered } = operation;
  if (operation.outcome === "refused" || operation.queue === "") return undefined;
  const about = { queue: operation.queue, owner, gateway: peer.gateway, sent };
  const ownership: Ownership = answered === undefined ? { ...about, until: sent } : { ...about, answered };
  world.history.ownerships.push(ownership);
  void peer.closed.then(() => {
    ownership.until ??= now();
    ownership.ended ??= now();
  });
  if (answered === undefined) peer.destroy();
  return ownership;
}

async function own(
  world: World,
  peer: Peer,
  random: Random,
  ownership: Ownership,
  consuming: Consuming,
): Promise<void> {
  const { queue, owner } = ownership;
  world.owned.add(queue);
  const begun = await consuming.begin(peer, random.pick([1, 20, 100]), owner);
  const end = now() + random.integer(300, 10_000);
  const strangers = knock(world, random, ownership, end);
  const way = random.pick([...WAYS, "delete"] as const);
  if (begun.kind === "ok") {
    await work(world, peer, random, { consuming, manner: { discard: 0, requeue: random.pick([0, 0.1]) }, end });
  }
  world.owned.delete(queue);
  ownership.until ??= now();
  if (way === "delete" && consuming.isOpen) {
    const { operation } = await world.operate(peer, "delete", { queue, asker: owner }, () =>
      peer.ask(1, "queue.delete", { queue }),
    );
    if (operation.outcome === "ok") ownership.ended ??= now();
  }
  await consuming.leave(way === "delete" ? "connection" : way);
  await peer.closed;
  await strangers;
}

/** Other connections, on any gateway, try to use it until it is given up. */
async function knock(world: World, random: Random, ownership: Ownership, end: number): Promise<void> {
  const asker = `${ownership.owner} stranger`;
  while (ownership.until === undefined && now() < end && !world.isStopping) {
    const peer = await world.connect(random, {});
    if (peer === undefined) return;
    for (let knocks = random.integer(1, 5); knocks > 0 && peer.isOpen && ownership.until === undefined; knocks--) {
      await peer.ask(1, "channel.open", {});
      const answer = await tryIt(world, peer, random, ownership.queue, asker);
      // What was not refused has left the channel as it was.
      if (answer.kind === "ok") break;
      await world.pause(random.integer(50, 500));
    }
    peer.destroy();
  }
}

function tryIt(world: World, peer: Peer, random: Random, queue: string, asker: string): Promise<Answer> {
  const kind = random.pick(["passive", "consume", "get", "bind", "purge", "delete"] as const);
  // One that stands: an exchange that is not found is said first.
  const exchange = kind === "bind" ? random.pick(LASTING_EXCHANGES) : "";
  const ask = (): Promise<Answer> => {
    switch (kind) {
      case "passive":
        return peer.ask(1, "queue.declare", { queue, passive: true });
      case "consume":
        return peer.ask(1, "basic.consume", { queue, consumerTag: "t" });
      case "get":
        return peer.ask(1, "basic.get", { queue });
      case "bind":
        return peer.ask(1, "queue.bind", { queue, exchange, routingKey: "stranger" });
      case "purge":
        return peer.ask(1, "queue.purge", { queue });
      case "delete":
        return peer.ask(1, "queue.delete", { queue });
    }
  };
  return world.operate(peer, kind, { queue, exchange, key: "stranger", asker }, ask).then(({ answer }) => answer);
}

/** Asks for it until it is not found, or another one has declared it. */
async function watch(world: World, random: Random, ownership: Ownership): Promise<void> {
  const { queue, owner } = ownership;
  const { ownerships } = world.history;
  const later = ownerships.length;
  const isTaken = (): boolean => ownerships.slice(later).some((each) => each.queue === queue);
  for (const end = now() + WATCHED; now() < end && !isTaken(); ) {
    const peer = await world.connect(random, {});
    if (peer === undefined) return;
    await peer.ask(1, "channel.open", {});
    const { operation, answer } = await world.operate(peer, "passive", { queue, asker: `${owner} watch` }, () =>
      peer.ask(1, "queue.declare", { queue, passive: true }),
    );
    peer.destroy();
    if (answer.kind === "refused" && answer.code === 404) {
      ownership.gone = operation.answered ?? now();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, random.integer(50, 250)));
  }
}
