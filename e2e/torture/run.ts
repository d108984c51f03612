// One torture run from beginning to end: processes, actors, faults, drain, verdict. Used by main.ts and torture.test.ts,
// which differ in how long they let it run and how they report. Separate so that both are the same run.

import { startBus } from "./bus.ts";
import { consumer } from "./consumer.ts";
import { deleteAll, drain } from "./drain.ts";
import { dealFaults, type FaultKind } from "./faults.ts";
import type { History } from "./history.ts";
import { check, explain } from "./laws/check.ts";
import type { Violation } from "./laws/violation.ts";
import { noAckConsumer } from "./no-ack-consumer.ts";
import { owner } from "./owner.ts";
import { Processes } from "./processes.ts";
import { publisher } from "./publisher.ts";
import { purger } from "./purger.ts";
import { randomOf } from "./random.ts";
import { declareExchange, declareQueue, topologist } from "./topologist.ts";
import { EXCHANGES, PATIENCE, PATIENCE_OF_THREE, PURGED_QUEUES, QUEUES, World } from "./world.ts";

/** What to run. The seed decides operations and faults; their timing against each other varies. */
export interface TortureOptions {
  readonly seed: number;
  /** How long the actors work; boot, drain and verdict come on top. */
  readonly seconds: number;
  readonly faults: readonly FaultKind[];
  readonly gateways?: number;
  /** nats-servers: one, or a cluster of three with three copies. */
  readonly servers?: 1 | 3;
  /** Messages a second, all publishers together. */
  readonly rate?: number;
}

/** What came of it. */
export interface TortureResult {
  readonly history: History;
  readonly violations: readonly Violation[];
  /** What the gateways logged. */
  readonly logs: readonly { readonly gateway: number; readonly at: number; readonly text: string }[];
}

const PUBLISHERS = 3;
const CONSUMERS = 6;
const NO_ACK_CONSUMERS = 2;
const OWNERS = 3;
const TOPOLOGISTS = 2;

/** Runs it; throws only where it cannot be run at all. */
export async function torture(options: TortureOptions): Promise<TortureResult> {
  const { seed, seconds, faults, gateways = 3, servers = 1, rate = 200 } = options;
  const random = (name: string): ReturnType<typeof randomOf> => randomOf(seed, name);
  let processes: Processes | undefined;
  const world = new World(gateways, servers === 3 ? PATIENCE_OF_THREE : PATIENCE, (gateway) =>
    processes?.portOf(gateway),
  );
  const bus = await startBus(servers);
  processes = await Processes.start(gateways, bus, world.history.faults);
  try {
    await prepare(world);
    const actors = [
      ...times(PUBLISHERS, (n) => publisher(world, random(`publisher ${n}`), `p${n}`, rate / PUBLISHERS)),
      ...times(CONSUMERS, (n) => consumer(world, random(`consumer ${n}`), `c${n}`)),
      ...times(NO_ACK_CONSUMERS, (n) => noAckConsumer(world, random(`no-ack consumer ${n}`), `n${n}`)),
      ...times(OWNERS, (n) => owner(world, random(`owner ${n}`), `o${n}`)),
      ...PURGED_QUEUES.map((queue, n) => purger(world, random(`purger ${n}`), `u${n}`, queue)),
      ...times(TOPOLOGISTS, (n) => topologist(world, random(`topologist ${n}`))),
    ];
    const end = setTimeout(() => world.stopping.abort(), seconds * 1_000);
    await Promise.all([...actors, ...dealers(servers, faults).map(deal)]);
    clearTimeout(end);
    await drain(world, random("drain"), bus.url);
    await deleteAll(world, random("delete"), bus.url, processes.live);
  } finally {
    await processes.stop();
  }
  const logs = processes.logs();
  return { history: world.history, violations: check(world.history), logs };

  function deal(kinds: readonly FaultKind[], n: number): Promise<void> {
    if (processes === undefined) throw new Error("no processes");
    const blows = dealFaults(processes, random(n === 0 ? "faults" : `faults ${n}`), kinds, world);
    // What cannot be brought back ends the run.
    return blows.finally(() => kinds.length > 0 && world.stopping.abort());
  }
}

/** A cluster takes long to be whole again: gateways are struck meanwhile too. */
function dealers(servers: 1 | 3, faults: readonly FaultKind[]): readonly (readonly FaultKind[])[] {
  if (servers === 1) return [faults];
  return [faults.filter((kind) => kind !== "bus"), faults.filter((kind) => kind === "bus")];
}

async function prepare(world: World): Promise<void> {
  const peer = await world.connect(randomOf(0, "prepare"), {}, 0);
  if (peer === undefined) throw new Error("no gateway answers");
  await peer.ask(1, "channel.open", {});
  for (const exchange of Object.keys(EXCHANGES)) await declareExchange(world, peer, exchange);
  for (const queue of QUEUES) await declareQueue(world, peer, queue);
  peer.destroy();
}

function times<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

/** What a failed run prints: every law that was broken, the first breaches of each with their history, and the seed. */
export function report(
  { seed, seconds, faults, servers }: TortureOptions,
  { history, violations }: TortureResult,
): string {
  const lines: string[] = [summary(history)];
  const byLaw = groupBy(violations, ({ law }) => law);
  for (const [law, all] of byLaw) {
    lines.push(`\n${law}: ${all.length}`);
    // Of one message or queue the first says as much as all.
    const firsts = [...groupBy(all, ({ message, queue }) => `${message} ${queue}`).values()].flatMap(
      ([first]) => first ?? [],
    );
    for (const violation of firsts.slice(0, 3)) {
      lines.push(`  ${violation.text}`);
      if (violation.message !== undefined || violation.queue !== undefined) {
        lines.push(...explain(history, violation).map((line) => `    ${line}`));
      }
    }
  }
  if (violations.length > 0) {
    const again = `--seed ${seed} --seconds ${seconds} --faults ${faults.join(",") || "none"}${servers === 3 ? " --servers 3" : ""}`;
    lines.push(`\n${violations.length} breaches; run it again by: node e2e/torture/main.ts ${again}`);
  }
  return lines.join("\n");
}

/** What was done, in one line. */
export function summary(history: History): string {
  const { publishes, deliveries, operations, ownerships, faults, drained } = history;
  const confirmed = publishes.filter(({ outcome }) => outcome === "acked").length;
  const again = deliveries.filter(({ redelivered }) => redelivered).length;
  const unknown = operations.filter(({ outcome }) => outcome === "unknown").length;
  const sent = deliveries.filter(({ settlement }) => settlement === "sent").length;
  const purges = operations.filter(({ messages }) => messages !== undefined);
  const purged = purges.reduce((sum, { messages = 0 }) => sum + messages, 0);
  const kinds = [...groupBy(faults, ({ kind }) => kind)].map(([kind, all]) => `${all.length} ${kind}`);
  return [
    `${publishes.length} published (${confirmed} confirmed)`,
    `${deliveries.length} delivered (${again} again, ${sent} without acknowledgement)`,
    `${purged} purged in ${purges.length} purges`,
    `${ownerships.length} exclusive queues`,
    `${operations.length} operations (${unknown} unknown)`,
    `${drained.size} queues drained`,
    kinds.length === 0 ? "no faults" : kinds.join(", "),
  ].join("; ");
}

function groupBy<T>(all: readonly T[], name: (each: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) groups.set(name(each), [...(groups.get(name(each)) ?? []), each]);
  return groups;
}
