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

async function step(
  load: Amqpload,
  target: Target,
  at: number,
  calls: readonly string[],
  tell: (line: string) => void,
): Promise<Step> {
  // Once to warm up: the code that a step is the first to run, and what it declares.
  await load.run(calls, target);
  const { perSecond, micros } = await load.run(calls, target);
  const mib = residentKib(target.pids()[0] ?? 0) / 1024;
  tell(`  ${at}: ${perSecond.toFixed(0)}/s, ${micros.toFixed(1)} µs a message, gateway ${mib.toFixed(0)} MiB`);
  return { at, perSecond, micros, mib };
}

/** Each step on a gateway of its own. */
async function steps(
  load: Amqpload,
  sizes: readonly number[],
  callsOf: (size: number) => readonly string[],
  tell: (line: string) => void,
  argsOf: (size: number) => readonly string[] = () => [],
): Promise<readonly Step[]> {
  const all: Step[] = [];
  for (const size of sizes) {
    const target = await startOurs({ args: argsOf(size) });
    try {
      all.push(await step(load, target, size, callsOf(size), tell));
    } catch (error) {
      tell(`  ${size}: ${error instanceof Error ? error.message : error}`);
    } finally {
      await target.stop();
    }
  }
  return all;
}

function line(name: string, all: readonly Step[], of: (step: Step) => number): Series {
  return { name, points: all.map((each) => [each.at, of(each)]) };
}

function costAndMemory(what: string, x: string, all: readonly Step[]): readonly Curve[] {
  return [
    { title: `${what}: rate`, x, y: "messages a second", series: [line("rate", all, ({ perSecond }) => perSecond)] },
    {
      title: `${what}: CPU a message (gateway and bus) and memory of the gateway`,
      x,
      y: "µs, MiB",
      series: [line("µs a message", all, ({ micros }) => micros), line("MiB", all, ({ mib }) => mib)],
    },
  ];
}

const CONNECTIONS: Growth = {
  name: "connections",
  measure: async (load, tell) => {
    // Half publish, half consume, over at most a hundred queues.
    const all = await steps(
      load,
      [2, 10, 100, 1_000],
      (n) => [`-m flow -d -w 20 -f 20 -c ${n / 2} -C ${n / 2} -Q ${Math.min(n / 2, 100)} -s 1024 -n ${MESSAGES}`],
      tell,
    );
    return costAndMemory("Connections, 1 KiB, confirmed and acknowledged", "connections", all);
  },
};

const QUEUES: Growth = {
  name: "queues",
  measure: async (load, tell) => {
    const all: Step[] = [];
    const target = await startOurs();
    try {
      let idle = 0;
      for (const size of [1, 10, 100, 1_000, 5_000]) {
        if (size - 1 > idle) {
          await load.run(`-m declare -x -n ${size - 1 - idle} -q idle-${size} -t 0`, target);
          idle = size - 1;
        }
        all.push(await step(load, target, size, ["-m flow -d -w 1000 -f 100 -s 1024 -n 10000"], tell));
      }
    } catch (error) {
      tell(`  ${error instanceof Error ? error.message : error}`);
    } finally {
      await target.stop();
    }
    return costAndMemory("One busy queue among idle ones, 1 KiB", "queues", all);
  },
};

const BINDINGS: Growth = {
  name: "bindings",
  measure: async (load, tell) => {
    const all = await steps(
      load,
      [1, 10, 100, 1_000, 10_000],
      (n) => [`-m pub -w 1000 -e tx -E topic -b ${n} -Q ${Math.min(n, 100)} -K a.0.b -s 1024 -n ${MESSAGES}`],
      tell,
    );
    return costAndMemory("Bindings of a topic exchange over up to 100 queues, 1 KiB, confirmed", "bindings", all);
  },
};

const BODY: Growth = {
  name: "body",
  measure: async (load, tell) => {
    const all = await steps(
      load,
      [0, 64, 1_024, 16_384, 131_072, 1_048_576, 8_387_584],
      (size) => {
        const n = Math.max(20, Math.min(MESSAGES, Math.round(2e8 / Math.max(size, 1))));
        return [`-m flow -d -w ${size > 1e6 ? 20 : 1_000} -f ${size > 1e6 ? 10 : 100} -s ${size} -n ${n}`];
      },
      tell,
    );
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
  },
};

const WORKERS: Growth = {
  name: "workers",
  measure: async (load, tell) => {
    const all = await steps(
      load,
      [1, 2, 3, 4],
      () => [`-m flow -d -w 250 -f 100 -c 4 -C 4 -Q 4 -s 1024 -n ${MESSAGES * 2}`],
      tell,
      (n) => ["--workers", `${n}`],
    );
    return costAndMemory("Workers, 4 + 4 connections, 1 KiB", "workers", all);
  },
};

export const GROWTHS: readonly Growth[] = [CONNECTIONS, QUEUES, BINDINGS, BODY, WORKERS];
