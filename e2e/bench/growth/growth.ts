// What a message costs, and what memory is held, as one thing grows: connections, queues, bindings, body, workers.
// Used by main. Separate because each is a loop over one number on a fresh gateway, and says nothing of RabbitMQ.
import type { Amqpload } from "../amqpload.ts";
import { residentKib } from "../processes.ts";
import { startOurs, type Target } from "../targets.ts";
import type { Curve, Series } from "./curve.ts";

/** A thing that grows. */
export interface Growth {
  /** The file's name. */
  readonly name: string;
  measure(load: Amqpload, tell: (line: string) => void): Promise<readonly Curve[]>;
}

interface Step {
  readonly at: number;
  readonly perSecond: number;
  readonly micros: number;
  readonly mib: number;
}

/** Messages of a step: enough that starting counts little, and few enough for the slowest one. */
const MESSAGES = 20_000;

/** Seconds. */
const DECLARING = 900;

/** What grows, and what is run at each size, on a gateway of its own. */
interface Steps {
  readonly sizes: readonly number[];
  /** The load's arguments. */
  load(size: number): string;
  /** The gateway's. */
  args?(size: number): readonly string[];
  /** Of a load that is run first, and makes what the measured one is among; undefined where that is nothing. */
  first?(size: number): string | undefined;
}

async function step(load: Amqpload, target: Target, steps: Steps, at: number): Promise<Step> {
  const first = steps.first?.(at);
  if (first !== undefined) await load.run(first, target);
  // Once to warm up: the code that a step is the first to run, and what it declares, ten thousand bindings one by one.
  await load.run(steps.load(at), target, DECLARING);
  const { perSecond, micros } = await load.run(steps.load(at), target);
  return { at, perSecond, micros, mib: residentKib(target.pids()[0] ?? 0) / 1024 };
}

/** A size that fails is told, and is no point of the curves. */
function growth(name: string, steps: Steps, draw: (all: readonly Step[]) => readonly Curve[]): Growth {
  return {
    name,
    measure: async (load, tell) => {
      const all: Step[] = [];
      for (const size of steps.sizes) {
        const target = await startOurs({ args: steps.args?.(size) ?? [] });
        try {
          const done = await step(load, target, steps, size);
          const { perSecond, micros, mib } = done;
          tell(
            `  ${size}: ${perSecond.toFixed(0)}/s, ${micros.toFixed(1)} µs a message, gateway ${mib.toFixed(0)} MiB`,
          );
          all.push(done);
        } catch (error) {
          tell(`  ${size}: ${error instanceof Error ? error.message : error}`);
        } finally {
          await target.stop();
        }
      }
      return draw(all);
    },
  };
}

function line(name: string, all: readonly Step[], of: (step: Step) => number): Series {
  return { name, points: all.map((each) => [each.at, of(each)]) };
}

function costAndMemory(what: string, x: string): (all: readonly Step[]) => readonly Curve[] {
  return (all) => [
    { title: `${what}: rate`, x, y: "messages a second", series: [line("rate", all, ({ perSecond }) => perSecond)] },
    {
      title: `${what}: CPU a message (gateway and bus) and memory of the gateway`,
      x,
      y: "µs, MiB",
      series: [line("µs a message", all, ({ micros }) => micros), line("MiB", all, ({ mib }) => mib)],
    },
  ];
}

function rateAndOctets(all: readonly Step[]): readonly Curve[] {
  const x = "octets of a body";
  const mib = ({ at, perSecond }: Step): number => (at * perSecond) / 2 ** 20;
  return [
    {
      title: "Body, published, confirmed, consumed, acknowledged: rate",
      x,
      y: "messages a second",
      series: [line("rate", all, ({ perSecond }) => perSecond)],
    },
    {
      title: "Body: octets a second, and memory of the gateway",
      x,
      y: "MiB a second, MiB",
      series: [line("MiB a second", all, mib), line("MiB of memory", all, (each) => each.mib)],
    },
  ];
}

export const GROWTHS: readonly Growth[] = [
  growth(
    "connections",
    {
      sizes: [2, 10, 100, 1_000],
      // Half publish, half consume, over at most a hundred queues.
      load: (n) => `-m flow -d -w 20 -f 20 -c ${n / 2} -C ${n / 2} -Q ${Math.min(n / 2, 100)} -s 1024 -n ${MESSAGES}`,
    },
    costAndMemory("Connections, 1 KiB, confirmed and acknowledged", "connections"),
  ),
  growth(
    "queues",
    {
      sizes: [1, 10, 100, 1_000, 5_000],
      first: (n) => (n === 1 ? undefined : `-m declare -x -n ${n - 1} -q idle -t 0`),
      // Beside thousands an ack is milliseconds of the bus's, and what it has not come to holds the next run up.
      load: (n) => `-m flow -d -w ${n > 1_000 ? 100 : 1_000} -f 100 -s 1024 -n ${n > 1_000 ? 1_000 : 10_000}`,
    },
    costAndMemory("One busy queue among idle ones, 1 KiB", "queues"),
  ),
  growth(
    "bindings",
    {
      sizes: [1, 10, 100, 1_000, 10_000],
      load: (n) => `-m pub -w 1000 -e tx -E topic -b ${n} -Q ${Math.min(n, 100)} -K a.0.b -s 1024 -n ${MESSAGES}`,
    },
    costAndMemory("Bindings of a topic exchange over up to 100 queues, 1 KiB, confirmed", "bindings"),
  ),
  growth(
    "body",
    {
      sizes: [0, 64, 1_024, 16_384, 131_072, 1_048_576, 8_387_584],
      load: (size) => {
        const n = Math.max(20, Math.min(MESSAGES, Math.round(2e8 / Math.max(size, 1))));
        return `-m flow -d -w ${size > 1e6 ? 20 : 1_000} -f ${size > 1e6 ? 10 : 100} -s ${size} -n ${n}`;
      },
    },
    rateAndOctets,
  ),
  growth(
    "workers",
    {
      sizes: [1, 2, 3, 4],
      args: (n) => ["--workers", `${n}`],
      load: () => `-m flow -d -w 250 -f 100 -c 4 -C 4 -Q 4 -s 1024 -n ${MESSAGES * 2}`,
    },
    costAndMemory("Workers, 4 + 4 connections, 1 KiB", "workers"),
  ),
];
