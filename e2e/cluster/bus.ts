// What three nats-servers alone, without any gateway, do to queues with backlogs while consumers of the same stream end and
// one server at a time is killed: a message that was confirmed and not acknowledged, and does not come (again), is lost by
// the bus. This is why nothing is counted by a consumer of the log on a cluster (packages/broker/src/core/tally.ts).
//   node e2e/cluster/bus.ts [--end none|count|queue|filter] [--renew] [--minutes 4] [--seed 1]
// `--end`: what ends meanwhile: nothing, counting consumers, durable ones, or a filter. Four queues, 60 messages a second
// each; of what a client gets it acknowledges a tenth after having handed it back, a fifth after up to 8 s, 2 % never. Needs
// NATS_SERVER_BIN. Exit code 1 where something was lost.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connect } from "@nats-io/transport-node";
import { releaseAll } from "../harness/owned.ts";
import { randomOf } from "../torture/random.ts";
import { Backlog } from "./backlog.ts";
import { NatsCluster } from "./servers.ts";

const { values } = parseArgs({
  options: {
    end: { type: "string", default: "count" },
    renew: { type: "boolean", default: false },
    minutes: { type: "string", default: "4" },
    seed: { type: "string", default: "1" },
  },
});
const SECOND = 1_000_000_000;
const random = randomOf(Number(values.seed), "bus");
const cluster = await NatsCluster.start();
const forever = { servers: cluster.urls.split(","), maxReconnectAttempts: -1, reconnectTimeWait: 50 };
const [publishing, pulling, api] = await Promise.all([connect(forever), connect(forever), connect(forever)]);
let [ended, kills, serial, isStopping, isPaused] = [0, 0, 0, false, false];

async function ask<T>(verb: string, body: object | string = ""): Promise<T> {
  const payload = typeof body === "string" ? body : JSON.stringify(body);
  const said = (await api.request(`$JS.API.${verb}`, payload, { timeout: 8_000 })).json<T & { error?: object }>();
  if (said.error !== undefined) throw new Error(`${verb}: ${JSON.stringify(said.error)}`);
  return said;
}

async function make(name: string, filters: readonly string[], more: object): Promise<void> {
  const config = { name, filter_subjects: filters, ...more };
  await ask(`CONSUMER.CREATE.T.${name}`, { stream_name: "T", config });
}

function durable(name: string, filters: readonly string[] = [], wait = 300): Promise<void> {
  const acks = { ack_policy: "explicit", ack_wait: wait * SECOND, max_ack_pending: -1 };
  return make(name, [`t.${name}`, ...filters], { durable_name: name, deliver_policy: "new", ...acks });
}

/** Resolves to where it is stored; throws where that is not known. */
async function publish(name: string, text: string): Promise<number> {
  const said = (await publishing.request(`t.${name}`, text, { timeout: 8_000 })).json<{
    error?: object;
    seq: number;
  }>();
  if (said.error !== undefined) throw new Error(JSON.stringify(said.error));
  return said.seq;
}

async function goesOn(): Promise<boolean> {
  while (isPaused && !isStopping) await sleep(20);
  return !isStopping;
}

const queues = ["q1", "q2", "q3", "q4"].map(
  (name) => new Backlog(name, { connection: pulling, random, publish, durable, goesOn }),
);

/** Makes what is to end, and ends it. */
async function end(thrower: string): Promise<void> {
  const name = `e${++serial}`;
  if (values.end === "count") {
    const { name: queue } = random.pick(queues);
    const { delivered } = await ask<{ delivered: { stream_seq: number } }>(`CONSUMER.INFO.T.${queue}`);
    const from = { deliver_policy: "by_start_sequence", opt_start_seq: delivered.stream_seq + 1 };
    const idle = { ack_policy: "none", mem_storage: true, inactive_threshold: 30 * SECOND };
    await make(name, [`t.${queue}`], { ...from, ...idle });
  } else if (values.end === "queue") await durable(name);
  else {
    await durable(thrower, [`t.${name}`]);
    return await durable(thrower);
  }
  await ask(`CONSUMER.DELETE.T.${name}`);
}

async function endAll(thrower: string): Promise<void> {
  while (values.end !== "none" && (await goesOn())) {
    await end(thrower).then(
      () => ended++,
      () => sleep(200),
    );
    await sleep(random.integer(0, 100));
  }
}

/** Replaces the message that stands in the stream, as packages/broker/src/nats/keeper.ts does. */
async function renew(): Promise<void> {
  const next = JSON.stringify({ batch: 1, no_wait: true });
  while (values.renew && (await goesOn())) {
    await sleep(1_000);
    try {
      await publish("standing", "");
      const oldest = await api.request("$JS.API.CONSUMER.MSG.NEXT.T.standing", next, { timeout: 2_000, noMux: true });
      if (oldest.reply) oldest.respond("+ACK");
    } catch {
      // Nobody leads; the old one stands.
    }
  }
}

/** Kills a server, and the next one when each copy reaches as far as the others and every consumer's members are up to date. */
async function kill(): Promise<void> {
  const server = random.pick(cluster.servers);
  await sleep(random.integer(1_000, 4_000));
  await server.kill();
  kills++;
  await sleep(random.integer(200, 6_000));
  await server.start();
  await cluster.whole(["T"]);
  isPaused = true;
  await sleep(1_500);
  const copies = () => Promise.all(cluster.servers.map((each) => each.copy("T")));
  await cluster.until(
    "the copies reach equally far",
    async () => new Set((await copies()).map((copy) => copy.lastSequence)).size === 1,
  );
  await cluster.whole(["T"]);
  await sleep(1_000);
  const has = (await copies()).map(({ messages }) => messages).join(", ");
  console.log(
    `${server.name} is back: ${queues.reduce((sum, { owed }) => sum + owed, 0)} not acknowledged; copies ${has}`,
  );
  isPaused = false;
}

try {
  const stream = {
    name: "T",
    subjects: ["t.>"],
    retention: "interest",
    storage: "file",
    discard: "new",
    num_replicas: 3,
  };
  await ask("STREAM.CREATE.T", { ...stream, max_consumers: 100_000 });
  const throwers = ["b1", "b2", "b3", "b4"];
  for (const name of ["standing", ...throwers, ...queues.map((queue) => queue.name)]) await durable(name);
  await sleep(2_000);
  await publish("standing", "");
  const work = queues.flatMap((queue) => [queue.work(), ...[1, 2, 3, 4].map(() => queue.publish())]);
  work.push(...throwers.map(endAll), renew());
  for (const last = Date.now() + Number(values.minutes) * 60_000; Date.now() < last; ) await kill();
  isStopping = true;
  await Promise.all(work);
  const drained = await Promise.all(queues.map((queue) => queue.drain()));
  const lost = drained.reduce((sum, each) => sum + each.lost.length, 0);
  const confirmed = queues.reduce((sum, each) => sum + each.confirmed, 0);
  const never = drained.reduce((sum, each) => sum + each.never, 0);
  console.log(
    `${values.end}: ${lost} of ${confirmed} lost, ${never} of these never came; ${kills} kills, ${ended} ends`,
  );
  if (lost > 0) process.exitCode = 1;
} finally {
  await Promise.all([publishing.close(), pulling.close(), api.close()]);
  await cluster.stop();
  await releaseAll();
}
