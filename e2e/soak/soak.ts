// The soak: mixed load with churn on a fleet in which nothing fails, for as long as one likes, and what it left behind.
// Used by main.ts and soak.test.ts. Separate from the torture, which asks whether crashes are survived: this asks whether
// ordinary life is paid back to the last key, and whether memory stays flat.
import { setTimeout as sleep } from "node:timers/promises";
import { startNats } from "../harness/nats-server.ts";
import { oneServer } from "../torture/bus.ts";
import { Processes } from "../torture/processes.ts";
import { randomOf } from "../torture/random.ts";
import { caller, clear, prepare, RPC, type Site, STEADY, server, steady, subscriber, type Work } from "./load.ts";
import { type Counts, count, freePort, look, type Memory, residentMemory, slope } from "./watch.ts";

export interface SoakOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly gateways?: number;
  /** Told now and then how it goes. */
  tell?(line: string): void;
}

export interface SoakResult {
  readonly work: Work;
  readonly memory: readonly Memory[];
  /** What was there when a first, short load had gone, when the long one had, and when everything was deleted. */
  readonly before: Counts;
  readonly after: Counts;
  readonly end: Counts;
  /** What the gateways warned of, or the bus forgot. */
  readonly warnings: readonly string[];
}

/** The first load: whatever is made once and kept (code, caches, subscriptions) is there after it. */
const FIRST = 5_000;
const SETTLED = 30_000;
/**
 * An engine with room lets its heap grow five times what it holds before it looks (measured: 84 MiB, of which 18 stayed when
 * it was told to): that hides a leak for hours, and in half an hour looks like one. With little room what grows is what is
 * kept. Go's collector waits until the heap is twice what was kept: here, until it is a fifth more.
 */
const SMALL_HEAP = "--max-old-space-size=64 --max-semi-space-size=2";
const SMALL_GO_HEAP = { GOGC: "20" };
/** Lines of the gateways' logs that are told where the soak breaks. */
const KEPT = 40;

export async function soak({ seed, seconds, gateways = 2, tell }: SoakOptions): Promise<SoakResult> {
  const monitor = await freePort();
  const conf = `http: "127.0.0.1:${monitor}"`;
  const nats = await startNats({ conf, env: SMALL_GO_HEAP });
  const processes = await Processes.start(gateways, oneServer(nats), [], {
    NODE_OPTIONS: SMALL_HEAP,
    LOG_LEVEL: "debug",
  });
  const work: Work = {
    published: 0,
    confirmed: 0,
    delivered: 0,
    calls: 0,
    connections: 0,
    queues: 0,
    heard: new Map(),
    troubles: [],
  };
  const counts = (): Promise<Counts> => count(nats.url, monitor);
  const site = (stopping: AbortSignal): Site => ({
    gateways,
    portOf: (gateway) => processes.portOf(gateway),
    stopping,
    look: (queue) => look(nats.url, [RPC, queue]),
  });
  const memory: Memory[] = [];
  try {
    await prepare(site(AbortSignal.abort()), randomOf(seed, "prepare"));
    await load(site(AbortSignal.timeout(FIRST)), seed, "first", work);
    const before = await settledCounts(counts, undefined);
    const begin = performance.now();
    const stopping = AbortSignal.timeout(seconds * 1_000);
    const every = Math.max(500, Math.min(10_000, seconds * 10));
    const loading = load(site(stopping), seed, "long", work);
    const sampling = sample(
      () => [nats.pid, ...processes.pids],
      memory,
      begin,
      every,
      stopping,
      (line) => tell?.(`${line}; ${told(work)}`),
    );
    await Promise.all([loading, sampling]);
    const after = await settledCounts(counts, before);
    await clear(site(AbortSignal.abort()), randomOf(seed, "clear"));
    const nothing: Counts = { ...before, consumers: [], keys: [] };
    const warnings = processes.logs().flatMap(({ gateway, at, text }) => {
      const { level = "info", msg } = JSON.parse(text) as { readonly level?: string; readonly msg?: string };
      const isQuiet = level === "info" || (level === "debug" && !/pull|lease|log's state/.test(msg ?? ""));
      return isQuiet ? [] : [`${new Date(at).toISOString()} gateway ${gateway}: ${msg}`];
    });
    return { work, memory, before, after, end: await settledCounts(counts, nothing), warnings };
  } catch (error) {
    for (const { gateway, text } of processes.logs().slice(-KEPT)) tell?.(`gateway ${gateway}: ${text}`);
    throw error;
  } finally {
    await processes.stop();
  }
}

/** The laws of a soak that are broken, in words. `bound` is what a process may grow by, MiB a minute, after warming up. */
export function judge({ work, memory, before, after, end }: SoakResult, bound: number): string[] {
  const wrong = [...work.troubles];
  if (before.messages > 0 || after.messages > 0 || end.messages > 0) {
    wrong.push(`messages are left: ${before.messages}, ${after.messages}, ${end.messages}`);
  }
  for (const name of ["connections", "leases", "subscriptions"] as const) {
    if (after[name] > before[name]) wrong.push(`${name} grew from ${before[name]} to ${after[name]}`);
  }
  for (const name of ["consumers", "keys"] as const) {
    const more = after[name].filter((each) => !before[name].includes(each));
    if (more.length > 0) wrong.push(`${name} are left: ${more.join(", ")}`);
    if (end[name].length > 0) wrong.push(`${name} are left after all was deleted: ${end[name].join(", ")}`);
  }
  for (const [name, growth] of Object.entries(growths(memory))) {
    if (growth > bound) wrong.push(`${name} grows by ${growth.toFixed(2)} MiB a minute`);
  }
  return wrong;
}

/** MiB a minute after the first third. */
export function growths(memory: readonly Memory[]): Readonly<Record<string, number>> {
  const warm = memory.slice(Math.floor(memory.length / 3));
  const of = (octets: (each: Memory) => number): number =>
    slope(warm.map((each) => ({ at: each.at, octets: octets(each) }))) / 1_048_576;
  const result: Record<string, number> = { "nats-server": of(({ bus }) => bus) };
  for (let n = 0; n < (memory[0]?.gateways.length ?? 0); n++) {
    result[`gateway ${n}`] = of(({ gateways }) => gateways[n] ?? 0);
  }
  return result;
}

export function told({ published, delivered, calls, connections, queues }: Work): string {
  return `${published} published, ${delivered} delivered, ${calls} calls, ${connections} connections, ${queues} queues`;
}

async function load(site: Site, seed: number, name: string, work: Work): Promise<void> {
  const random = (actor: string): ReturnType<typeof randomOf> => randomOf(seed, `${name} ${actor}`);
  const actors: Promise<void>[] = [];
  for (const queue of STEADY) actors.push(steady(site, random(queue), work, queue, 100));
  for (let n = 0; n < 3; n++) {
    actors.push(caller(site, random(`caller ${n}`), work));
    actors.push(subscriber(site, random(`subscriber ${n}`), work, `${name}-${n}`));
  }
  // Who calls when the time is up is answered still.
  const serving = new AbortController();
  const served = server({ ...site, portOf: (n) => site.portOf(n), stopping: serving.signal }, random(RPC), work);
  await Promise.all(actors).finally(() => serving.abort());
  await served;
}

async function sample(
  pids: () => readonly number[],
  memory: Memory[],
  begin: number,
  every: number,
  stopping: AbortSignal,
  tell: (line: string) => void,
): Promise<void> {
  while (!stopping.aborted) {
    const [bus = 0, ...gateways] = await residentMemory(pids());
    memory.push({ at: performance.now() - begin, gateways, bus });
    const sizes = [bus, ...gateways].map((octets) => Math.round(octets / 1_048_576)).join(", ");
    if (memory.length % 6 === 1) tell(`${Math.round((performance.now() - begin) / 1_000)} s: ${sizes} MiB`);
    await sleep(every, undefined, { signal: stopping }).catch(() => undefined);
  }
}

/** The counts once they are as small as before, or after a while whatever they are: deletions end in the background. */
async function settledCounts(counts: () => Promise<Counts>, before: Counts | undefined): Promise<Counts> {
  const end = performance.now() + SETTLED;
  let last = await counts();
  for (let same = 0; performance.now() < end; ) {
    await sleep(1_000);
    const next = await counts();
    const isDone =
      before === undefined
        ? next.messages === 0
        : next.messages === 0 &&
          next.subscriptions <= before.subscriptions &&
          next.consumers.length <= before.consumers.length &&
          next.keys.length <= before.keys.length;
    same = isDone && JSON.stringify(next) === JSON.stringify(last) ? same + 1 : 0;
    last = next;
    if (same >= 2) break;
  }
  return last;
}
