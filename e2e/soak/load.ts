// The soak's clients: a steady stream through a durable queue, RPC over exclusive reply queues, subscribers that come and
// go with auto-delete queues and bindings, and connections that open and end in every way. Separate from soak.ts, which
// watches what all of this costs; here nothing is measured but how much was done.
import { setTimeout as sleep } from "node:timers/promises";
import type { FieldsInput, FieldsOf, MethodName } from "@amqp/codec";
import { Peer, type PeerListener } from "../torture/peer.ts";
import type { Random } from "../torture/random.ts";

/** What the load needs to know of the fleet. */
export interface Site {
  readonly gateways: number;
  portOf(gateway: number): number | undefined;
  readonly stopping: AbortSignal;
  /** What the bus has of a queue, in words, for a trouble's text. */
  look?(queue: string): Promise<string>;
}

/** What was done so far. */
export interface Work {
  published: number;
  confirmed: number;
  delivered: number;
  calls: number;
  connections: number;
  queues: number;
  /** When the server had a call that is not answered yet, by its body. */
  readonly heard: Map<string, number>;
  /** What a client met that it should not have. */
  readonly troubles: string[];
}

export const STEADY: readonly string[] = ["steady-0", "steady-1"];
export const RPC = "rpc";
export const EXCHANGE = "soak-topic";

/** Milliseconds after which a call counts as late, and as lost. */
const LATE = 10_000;
const LOST = 30_000;

type Delivered = NonNullable<PeerListener["delivered"]>;

/** Declares what lasts. */
export async function prepare(site: Site, random: Random): Promise<void> {
  const peer = await connect(site, random, {});
  await must(peer, "exchange.declare", { exchange: EXCHANGE, type: "topic", durable: true });
  for (const queue of [...STEADY, RPC]) await must(peer, "queue.declare", { queue, durable: true });
  await closed(peer);
}

/** Deletes it again. */
export async function clear(site: Site, random: Random): Promise<void> {
  const peer = await connect(site, random, {});
  for (const queue of [...STEADY, RPC]) await must(peer, "queue.delete", { queue });
  await must(peer, "exchange.delete", { exchange: EXCHANGE });
  await closed(peer);
}

/** With when, to be found in the gateways' logs. */
function trouble(work: Work, text: string): void {
  work.troubles.push(`${new Date().toISOString()} ${text}`);
}

/** Publishes with confirms and consumes with acks on two connections that stay, perhaps of two gateways. */
export async function steady(site: Site, random: Random, work: Work, queue: string, perSecond: number): Promise<void> {
  let [sent, confirmed] = [0, 0];
  const consumer = await connect(site, random, {
    delivered: (_channel, { deliveryTag }) => {
      work.delivered++;
      consumer.send(1, "basic.ack", { deliveryTag });
    },
  });
  await must(consumer, "basic.qos", { prefetchCount: 50 });
  await must(consumer, "basic.consume", { queue, consumerTag: "t" });
  const publisher = await connect(site, random, {
    confirmed: (_kind, tag, multiple) => {
      const count = multiple ? tag - confirmed : 1;
      work.confirmed += count;
      confirmed += count;
    },
  });
  await must(publisher, "confirm.select", {});
  while (!site.stopping.aborted) {
    const batch = random.integer(1, 20);
    for (let left = batch; left > 0; left--) {
      publisher.publish(1, { routingKey: queue }, Buffer.alloc(random.integer(0, 2_000)));
      work.published++;
      sent++;
    }
    await pause(site, (batch * 1_000) / perSecond);
    while (sent - confirmed > 500 && publisher.isOpen) await sleep(5);
    if (!publisher.isOpen || !consumer.isOpen) {
      trouble(work, `a steady connection was lost: ${publisher.reason?.text ?? consumer.reason?.text}`);
      return;
    }
  }
  while (sent > confirmed && publisher.isOpen) await sleep(10);
  await closed(publisher);
  await sleep(500);
  await closed(consumer);
}

/** Answers calls. */
export async function server(site: Site, random: Random, work: Work): Promise<void> {
  const peer = await connect(site, random, {
    delivered: (_channel, { deliveryTag }, body) => {
      const call = body.toString();
      work.heard.set(call, performance.now());
      peer.publish(1, { routingKey: call.slice(0, call.indexOf(" ")) }, body);
      peer.send(1, "basic.ack", { deliveryTag });
    },
  });
  await must(peer, "basic.qos", { prefetchCount: 20 });
  await must(peer, "basic.consume", { queue: RPC, consumerTag: "t" });
  await aborted(site);
  await closed(peer);
}

/** Calls: a connection, an exclusive reply queue with a name of the broker's, some calls, and away. */
export async function caller(site: Site, random: Random, work: Work): Promise<void> {
  while (!site.stopping.aborted) {
    let answered: (call: string) => void = () => undefined;
    const peer = await connect(site, random, { delivered: (_channel, _fields, body) => answered(body.toString()) });
    work.connections++;
    const declared = await must(peer, "queue.declare", { exclusive: true });
    const queue = String(declared.queue);
    work.queues++;
    await must(peer, "basic.consume", { queue, consumerTag: "t", noAck: true });
    for (let calls = random.integer(1, 10); calls > 0 && peer.isOpen; calls--) {
      const call = `${queue} ${calls}`;
      const answer = new Promise<void>((resolve) => {
        answered = (which) => {
          if (which === call) resolve();
        };
      });
      const begun = performance.now();
      peer.publish(1, { routingKey: RPC }, Buffer.from(call));
      if (await isWithin(answer, LATE)) work.calls++;
      else await late(site, work, { call, queue, begun, answer });
      work.heard.delete(call);
    }
    await end(peer, random);
    await pause(site, random.integer(0, 100));
  }
}

interface Call {
  readonly call: string;
  readonly queue: string;
  readonly begun: number;
  readonly answer: Promise<void>;
}

/** Says of a call that is not answered how far it came, and whether it is late or lost. */
async function late(site: Site, work: Work, { call, queue, begun, answer }: Call): Promise<void> {
  const heard = work.heard.get(call);
  const server = heard === undefined ? "the server has not had it" : `the server had it after ${heard - begun} ms`;
  const state = await site.look?.(queue);
  const came = await isWithin(answer, LOST);
  const end = came ? `it came after ${Math.round(performance.now() - begun)} ms` : "it never came";
  trouble(work, `call ${call} was not answered for ${LATE} ms; ${server}; ${end}; ${state}`);
}

async function isWithin(what: Promise<void>, milliseconds: number): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(milliseconds, false, { signal: timer.signal }).catch(() => false);
  return await Promise.race([what.then(() => true), late]).finally(() => timer.abort());
}

/** Subscribes: an auto-delete queue bound by some keys, a while of messages, some unbound again, and away. */
export async function subscriber(site: Site, random: Random, work: Work, name: string): Promise<void> {
  for (let life = 0; !site.stopping.aborted; life++) {
    const delivered: Delivered = (_channel, { deliveryTag }: FieldsOf<"basic.deliver">) => {
      work.delivered++;
      peer.send(1, "basic.ack", { deliveryTag });
    };
    const peer = await connect(site, random, { delivered });
    work.connections++;
    const queue = `${name}-${life}`;
    await must(peer, "queue.declare", { queue, autoDelete: true, durable: random.chance(0.5) });
    work.queues++;
    const keys = Array.from({ length: random.integer(1, 5) }, (_, n) => `${random.pick(["a", "b", "c"])}.${n}`);
    const at = { queue, exchange: EXCHANGE };
    for (const routingKey of keys) await must(peer, "queue.bind", { ...at, routingKey });
    await must(peer, "basic.consume", { queue, consumerTag: "t" });
    for (let rounds = random.integer(1, 5); rounds > 0 && peer.isOpen; rounds--) {
      for (const routingKey of keys) peer.publish(1, { exchange: EXCHANGE, routingKey }, Buffer.from("x"));
      work.published += keys.length;
      await pause(site, random.integer(20, 300));
    }
    for (const routingKey of keys) {
      if (random.chance(0.5)) await must(peer, "queue.unbind", { ...at, routingKey });
    }
    if (random.chance(0.5)) await must(peer, "basic.cancel", { consumerTag: "t" });
    await end(peer, random);
    await pause(site, random.integer(0, 200));
  }
}

/** A connection with channel 1 open; a crash of the soak where no gateway answers, for nothing fails here. */
async function connect(site: Site, random: Random, listener: PeerListener): Promise<Peer> {
  const gateway = random.integer(0, site.gateways - 1);
  const port = site.portOf(gateway);
  const peer = port === undefined ? undefined : await Peer.open(port, gateway, listener);
  if (peer === undefined) throw new Error(`gateway ${gateway} does not answer`);
  await must(peer, "channel.open", {});
  return peer;
}

/** Nothing is refused and nothing is lost in a soak. */
async function must<N extends MethodName>(
  peer: Peer,
  name: N,
  fields: Partial<FieldsInput<N>> = {},
): Promise<Readonly<Record<string, unknown>>> {
  const answered = await peer.ask(1, name, fields);
  if (answered.kind === "ok") return answered.fields;
  const why = answered.kind === "refused" ? answered.text : (peer.reason?.text ?? "the connection was lost");
  throw new Error(`${name} at gateway ${peer.gateway}: ${why}`);
}

/** As clients do: with a word, or without. */
async function end(peer: Peer, random: Random): Promise<void> {
  if (random.chance(0.3)) peer.destroy();
  else await closed(peer);
}

async function closed(peer: Peer): Promise<void> {
  await peer.ask(0, "connection.close", { replyCode: 200 });
  peer.destroy();
}

async function pause(site: Site, milliseconds: number): Promise<void> {
  await sleep(milliseconds, undefined, { signal: site.stopping }).catch(() => undefined);
}

async function aborted({ stopping }: Site): Promise<void> {
  if (stopping.aborted) return;
  await new Promise<void>((resolve) => stopping.addEventListener("abort", () => resolve(), { once: true }));
}
