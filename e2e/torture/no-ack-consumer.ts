// An actor that consumes without acknowledgement, by basic.consume or one basic.get after another: what is sent to it is
// settled, whether it reads it or not. Separate from the other consumer because it settles nothing, and because what may
// be lost with it is what the laws must know.
import { Consuming, WAYS, WAYS_IN_ORDER } from "./consuming.ts";
import { type Life, now } from "./history.ts";
import type { Peer } from "./peer.ts";
import { idOf } from "./publisher.ts";
import type { Random } from "./random.ts";
import { NO_ACK_QUEUES, QUICK_QUEUE, type World } from "./world.ts";

/** How often it is made sure of that the bus knows what was sent, milliseconds. */
const SYNC = 300;

export async function noAckConsumer(world: World, random: Random, name: string): Promise<void> {
  for (let life = 0; !world.isStopping; life++) {
    const queue = random.pick(NO_ACK_QUEUES);
    const consuming = new Consuming(world, `${name}/${life}`, queue, true);
    const peer = await world.connect(random, consuming);
    if (peer === undefined) return;
    await peer.ask(1, "channel.open", {});
    if (random.chance(0.2)) {
      await getSome(world, peer, random, consuming);
      peer.destroy();
      continue;
    }
    const begun = await consuming.begin(peer, 0);
    if (begun.kind === "ok") {
      for (const end = now() + random.integer(500, 30_000); !world.isStopping && consuming.isOpen && now() < end; ) {
        await world.pause(random.integer(0, SYNC));
        if (!(await consuming.makeSure())) break;
      }
    } else await world.pause(200);
    await consuming.leave(random.pick(queue === QUICK_QUEUE ? WAYS_IN_ORDER : WAYS));
  }
}

/** One basic.get after another; each is a life, since its answer may be lost with its connection. */
async function getSome(world: World, peer: Peer, random: Random, { queue, name }: Consuming): Promise<void> {
  for (let left = random.integer(1, 30); left > 0 && peer.isOpen && !world.isStopping; left--) {
    const life: Life = {
      ...{ consumer: `${name} get ${left}`, queue, noAck: true, gateway: peer.gateway },
      ...{ from: now(), inOrder: false },
    };
    world.history.lives.push(life);
    const { answer } = await world.operate(peer, "get", { queue }, () =>
      peer.ask(1, "basic.get", { queue, noAck: true }),
    );
    const at = now();
    life.leaving = at;
    life.ended = at;
    life.inOrder = answer.kind === "ok" || (answer.kind === "refused" && answer.code < 500);
    if (answer.kind !== "ok") return;
    if (answer.name === "basic.get-ok") {
      const { redelivered, exchange, routingKey, body } = answer.fields as {
        readonly redelivered: boolean;
        readonly exchange: string;
        readonly routingKey: string;
        readonly body: Buffer;
      };
      world.history.deliveries.push({
        ...{ id: idOf(body) ?? "?", queue, exchange, routingKey, redelivered, gateway: peer.gateway },
        ...{ consumer: life.consumer, consumerSent: life.from, at, settlement: "sent", settledAt: at },
      });
    }
    await world.pause(random.integer(0, 100));
  }
}
