// One torture run from beginning to end: processes, actors, faults, drain, verdict. Used by main.ts and torture.test.ts,
// which differ in how long they let it run and how they report. Separate so that both are the same run.

import { consumer } from "./consumer.ts";
import { deleteAll, drain } from "./drain.ts";
import { dealFaults, type FaultKind } from "./faults.ts";
import type { History } from "./history.ts";
import { check, explain } from "./laws/check.ts";
import type { Violation } from "./laws/violation.ts";
import { Processes } from "./processes.ts";
import { publisher } from "./publisher.ts";
import { randomOf } from "./random.ts";
import { declareExchange, declareQueue, topologist } from "./topologist.ts";
import { EXCHANGES, QUEUES, World } from "./world.ts";

/** What to run. The seed decides operations and faults; their timing against each other varies. */
export interface TortureOptions {
  readonly seed: number;
  /** How long the actors work; boot, drain and verdict come on top. */
  readonly seconds: number;
  readonly faults: readonly FaultKind[];
  readonly gateways?: number;
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
const TOPOLOGISTS = 2;

/** Runs it; throws only where it cannot be run at all. */
export async function torture(options: TortureOptions): Promise<TortureResult> {
  const { seed, seconds, faults, gateways = 3, rate = 200 } = options;
  const random = (name: string): ReturnType<typeof randomOf> => randomOf(seed, name);
  let processes: Processes | undefined;
  const world = new World(gateways, (gateway) => processes?.portOf(gateway));
  processes = await Processes.start(gateways, world.history.faults);
  try {
    await prepare(world);
    const actors = [
      ...times(PUBLISHERS, (n) => publisher(world, random(`publisher ${n}`), `p${n}`, rate / PUBLISHERS)),
      ...times(CONSUMERS, (n) => consumer(world, random(`consumer ${n}`), `c${n}`)),
      ...times(TOPOLOGISTS, (n) => topologist(world, random(`topologist ${n}`))),
    ];
    const end = setTimeout(() => world.stopping.abort(), seconds * 1_000);
    const dealing = dealFaults(processes, random("faults"), faults, world)
      // What cannot be brought back ends the run.
      .finally(() => faults.length > 0 && world.stopping.abort());
    await Promise.all([...actors, dealing]);
    clearTimeout(end);
    await drain(world, random("drain"), processes.nats.url);
    await deleteAll(world, random("delete"), processes.nats.url, processes.live);
  } finally {
    await processes.stop();
  }
  const logs = processes.logs();
  return { history: world.history, violations: check(world.history), logs };
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
export function report({ seed, seconds, faults }: TortureOptions, { history, violations }: TortureResult): string {
  const lines: string[] = [summary(history)];
  const byLaw = groupBy(violations, ({ law }) => law);
  for (const [law, all] of byLaw) {
    lines.push(`\n${law}: ${all.length}`);
    for (const violation of all.slice(0, 3)) {
      lines.push(`  ${violation.text}`);
      if (violation.message !== undefined || violation.queue !== undefined) {
        lines.push(...explain(history, violation).map((line) => `    ${line}`));
      }
    }
  }
  if (violations.length > 0) {
    const again = `--seed ${seed} --seconds ${seconds} --faults ${faults.join(",") || "none"}`;
    lines.push(`\n${violations.length} breaches; run it again by: node e2e/torture/main.ts ${again}`);
  }
  return lines.join("\n");
}

/** What was done, in one line. */
export function summary({ publishes, deliveries, operations, faults, drained }: History): string {
  const confirmed = publishes.filter(({ outcome }) => outcome === "acked").length;
  const again = deliveries.filter(({ redelivered }) => redelivered).length;
  const unknown = operations.filter(({ outcome }) => outcome === "unknown").length;
  const kinds = [...groupBy(faults, ({ kind }) => kind)].map(([kind, all]) => `${all.length} ${kind}`);
  return [
    `${publishes.length} published (${confirmed} confirmed)`,
    `${deliveries.length} delivered (${again} again)`,
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
