// An actor that publishes with confirms, a batch at a time, and writes down what became of each message. One publisher is
// one channel after another: where its connection is lost, what was not answered is unknown. Separate from the other
// actors because its lane never waits for the topology.
import type { Publish } from "./history.ts";
import { now } from "./history.ts";
import type { Peer, PeerListener } from "./peer.ts";
import type { Random } from "./random.ts";
import { EXCHANGES, QUEUES, ROUTING_KEYS, type World } from "./world.ts";

/** Most messages without an answer. */
const WINDOW = 200;
const LARGE = 200_000;

export async function publisher(world: World, random: Random, name: string, perSecond: number): Promise<void> {
  let total = 0;
  for (let life = 0; !world.isStopping; life++) {
    const unanswered = new Map<number, Publish>();
    const byId = new Map<string, Publish>();
    const listener = confirmsTo(unanswered, byId, world);
    const peer = await world.connect(random, listener);
    if (peer === undefined) return;
    const opened = await peer.ask(1, "channel.open", {});
    const selected = opened.kind === "ok" ? await peer.ask(1, "confirm.select", {}) : opened;
    const lasts = world.isStopping || selected.kind !== "ok" ? 0 : now() + random.integer(3_000, 30_000);
    let isOpen = true;
    listener.channelClosed = (_channel, code, text) => {
      isOpen = false;
      if (code !== 404) world.complain(`a publisher's channel was closed: ${text}`);
    };
    for (let place = 0; peer.isOpen && isOpen && now() < lasts && !world.isStopping; ) {
      const batch = random.integer(1, 20);
      for (let left = batch; left > 0 && peer.isOpen; left--) {
        publishOne(peer, random, { id: `${name}-${total++}`, channel: `${name}/${life}`, place: ++place });
      }
      await world.pause((batch * 1000) / perSecond);
      while (unanswered.size >= WINDOW && peer.isOpen && isOpen && !world.isStopping) await world.pause(20);
    }
    // What is under way is answered, unless the connection goes.
    for (let waited = 0; unanswered.size > 0 && peer.isOpen && isOpen && waited < 40_000; waited += 20) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (unanswered.size > 0 && peer.isOpen && isOpen) {
      world.complain(`${unanswered.size} publishes at gateway ${peer.gateway} are not answered for 40 s`);
    }
    peer.destroy();

    function publishOne(to: Peer, draw: Random, which: { id: string; channel: string; place: number }): void {
      const exchange = draw.chance(0.25) ? "" : draw.pick(Object.keys(EXCHANGES));
      const named = world.owned.size > 0 && draw.chance(0.3) ? [...world.owned] : QUEUES;
      const routingKey = draw.pick(exchange === "" ? named : (ROUTING_KEYS[exchange] ?? [""]));
      const mandatory = draw.chance(0.4);
      const size = draw.chance(0.01) ? LARGE : draw.integer(0, 1_000);
      const publish: Publish = {
        ...which,
        exchange,
        routingKey,
        mandatory,
        gateway: to.gateway,
        sent: now(),
        outcome: "unknown",
      };
      world.history.publishes.push(publish);
      unanswered.set(publish.place, publish);
      byId.set(publish.id, publish);
      to.publish(1, { exchange, routingKey, mandatory }, bodyOf(publish.id, size));
    }
  }
}

/** Confirm tags are places: one channel, counted from 1. */
function confirmsTo(unanswered: Map<number, Publish>, byId: ReadonlyMap<string, Publish>, world: World): PeerListener {
  return {
    confirmed: (kind, tag, multiple) => {
      const answered = now();
      const tags = multiple ? [...unanswered.keys()].filter((each) => each <= tag) : [tag];
      for (const each of tags) {
        const publish = unanswered.get(each);
        if (publish === undefined) {
          world.complain(`publish ${each} of a channel was answered twice, or never sent`);
          continue;
        }
        unanswered.delete(each);
        publish.answered = answered;
        publish.outcome = kind === "ack" ? "acked" : "nacked";
      }
    },
    returned: (body) => {
      const publish = byId.get(idOf(body) ?? "");
      if (publish === undefined) world.complain("a return of what was not published here");
      else publish.returned = now();
    },
  };
}

/** The id, and filling whose every octet tells how long it is. */
export function bodyOf(id: string, filling: number): Buffer {
  return Buffer.concat([Buffer.from(`${id}|`), Buffer.alloc(filling, filling % 251)]);
}

/** The id in a body; undefined where the body is not whole. */
export function idOf(body: Buffer): string | undefined {
  const end = body.indexOf("|");
  if (end < 0) return undefined;
  const filling = body.length - end - 1;
  for (let at = end + 1; at < body.length; at++) if (body[at] !== filling % 251) return undefined;
  return body.subarray(0, end).toString();
}
