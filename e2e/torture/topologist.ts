// An actor that changes the topology: binds, unbinds, declares and deletes on any gateway, while others publish and
// consume. Separate from the other actors because its operations are what decides where messages belong.
import type { OperationKind } from "./history.ts";
import type { Answer, Peer } from "./peer.ts";
import type { Random } from "./random.ts";
import { BINDING_KEYS, CHURNED_EXCHANGE, CHURNED_QUEUES, EXCHANGES, QUEUES, type World } from "./world.ts";

export async function topologist(world: World, random: Random): Promise<void> {
  while (!world.isStopping) {
    const peer = await world.connect(random, {});
    if (peer === undefined) return;
    let left = random.integer(5, 40);
    for (let isOpen = false; left > 0 && peer.isOpen && !world.isStopping; left--) {
      if (!isOpen) isOpen = (await peer.ask(1, "channel.open", {})).kind === "ok";
      const answer = await changeSomething(world, peer, random);
      // A refusal closes the channel.
      if (answer.kind !== "ok") isOpen = false;
      await world.pause(random.integer(0, 400));
    }
    peer.destroy();
  }
}

async function changeSomething(world: World, peer: Peer, random: Random): Promise<Answer> {
  const draw = random.next();
  if (draw < 0.45) return bind(world, peer, random, "bind");
  if (draw < 0.75) return bind(world, peer, random, "unbind");
  if (draw < 0.88) return declareQueue(world, peer, random.pick(CHURNED_QUEUES));
  if (draw < 0.93) return deleteQueue(world, peer, random.pick(CHURNED_QUEUES));
  if (draw < 0.98) return declareExchange(world, peer, CHURNED_EXCHANGE);
  return deleteExchange(world, peer, CHURNED_EXCHANGE);
}

function bind(world: World, peer: Peer, random: Random, kind: Extract<OperationKind, "bind" | "unbind">) {
  const queue = random.pick(QUEUES);
  const exchange = random.pick(Object.keys(EXCHANGES));
  const key = random.pick(BINDING_KEYS[exchange] ?? [""]);
  return operated(world, peer, kind, { queue, exchange, key }, () =>
    kind === "bind"
      ? peer.ask(1, "queue.bind", { queue, exchange, routingKey: key })
      : peer.ask(1, "queue.unbind", { queue, exchange, routingKey: key }),
  );
}

export function declareQueue(world: World, peer: Peer, queue: string): Promise<Answer> {
  return operated(world, peer, "declare", { queue }, () => peer.ask(1, "queue.declare", { queue, durable: true }));
}

export function deleteQueue(world: World, peer: Peer, queue: string): Promise<Answer> {
  return operated(world, peer, "delete", { queue }, () => peer.ask(1, "queue.delete", { queue }));
}

export function declareExchange(world: World, peer: Peer, exchange: string): Promise<Answer> {
  const type = EXCHANGES[exchange as keyof typeof EXCHANGES];
  return operated(world, peer, "declare-exchange", { exchange }, () =>
    peer.ask(1, "exchange.declare", { exchange, type, durable: true }),
  );
}

export function deleteExchange(world: World, peer: Peer, exchange: string): Promise<Answer> {
  return operated(world, peer, "delete-exchange", { exchange }, () => peer.ask(1, "exchange.delete", { exchange }));
}

async function operated(
  world: World,
  peer: Peer,
  kind: OperationKind,
  what: { queue?: string; exchange?: string; key?: string },
  ask: () => Promise<Answer>,
): Promise<Answer> {
  return (await world.operate(peer, kind, what, ask)).answer;
}
