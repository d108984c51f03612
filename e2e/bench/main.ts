// `npm run bench`: every row on our gateway and on RabbitMQ 4, interleaved, as a table with verdicts; then the rows that
// are ours alone; then the codec and the translator by themselves.
//
//   npm run bench -- [quick|full] [--only WORDS] [--no-reference] [--no-micro]
//
// quick (the default) takes minutes and says where to look; full takes five rounds of every row, and only its medians
// count. A shared machine's rates vary by 2 to 3 between rounds: ratios within a round and CPU per message do not.
import { arch, cpus, loadavg, platform } from "node:os";
import { parseArgs } from "node:util";
import { Amqpload } from "./amqpload.ts";
import { measureCodec } from "./micro/codec.ts";
import { lineOf } from "./micro/measure.ts";
import { measureTranslator } from "./micro/translator.ts";
import { BINDS_ROW } from "./own/binds.ts";
import { IDLE_CONNECTIONS } from "./own/idle-connections.ts";
import { IDLE_QUEUES } from "./own/idle-queues.ts";
import { UNROUTABLE } from "./own/unroutable.ts";
import { WORKERS_ROW } from "./own/workers.ts";
import type { Effort, OwnRow, Row } from "./row.ts";
import { CALM } from "./rows/calm.ts";
import { CONSUME } from "./rows/consume.ts";
import { LARGE } from "./rows/large.ts";
import { PUBLISH } from "./rows/publish.ts";
import { HEADER, type Round, toLine } from "./table.ts";
import { startOurs, startReference, type Target } from "./targets.ts";

const EFFORTS: Readonly<Record<string, Effort>> = {
  quick: { rounds: 2, scale: 0.5 },
  full: { rounds: 5, scale: 1 },
};
const ROWS: readonly Row[] = [...PUBLISH, ...CONSUME, ...LARGE, ...CALM];
const OWN: readonly OwnRow[] = [BINDS_ROW, IDLE_CONNECTIONS, UNROUTABLE, IDLE_QUEUES, WORKERS_ROW];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string", default: "" },
    reference: { type: "boolean", default: true },
    micro: { type: "boolean", default: true },
  },
  allowNegative: true,
});
const effort = EFFORTS[positionals[0] ?? "quick"];
if (effort === undefined) {
  console.error(`bench: '${positionals[0]}' is neither quick nor full`);
  process.exit(2);
}
const chosen = <T extends { readonly name: string }>(rows: readonly T[]): T[] =>
  rows.filter(({ name }) => name.includes(values.only));

await main(effort);

async function main(how: Effort): Promise<void> {
  if (platform() !== "linux") throw new Error("the bench reads /proc: it needs Linux");
  const load = Amqpload.build();
  try {
    const [cpu] = cpus();
    console.log(
      `${cpus().length} x ${cpu?.model ?? arch()}, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}\n`,
    );
    if (values.reference) await compare(load, how);
    for (const row of chosen(OWN)) {
      console.log(`\n${row.name} (${row.must})`);
      try {
        const { lines, met } = await row.measure(load, how);
        for (const line of lines) console.log(`  ${line}`);
        if (met !== undefined) console.log(`  ${met ? "must" : "under must"}`);
      } catch (error) {
        console.log(`  failed: ${error instanceof Error ? error.message : error}`);
      }
    }
    if (values.micro && values.only === "") {
      console.log("\n| call | ns |\n|---|---|");
      for (const figure of [...(await measureCodec()), ...measureTranslator()]) console.log(lineOf(figure));
    }
  } finally {
    load.remove();
  }
}

async function compare(load: Amqpload, how: Effort): Promise<void> {
  const rows = chosen(ROWS);
  if (rows.length === 0) return;
  const reference = startReference();
  if (typeof reference === "string") {
    console.log(`no reference, so no ratios: ${reference} (AMQP_BENCH_REFERENCE=<port>:<pid>)`);
    return;
  }
  try {
    for (const line of HEADER) console.log(line);
    for (const row of rows) {
      // A gateway of its own: what a row leaves behind (queues, above all) is no other row's burden.
      const ours = await startOurs();
      try {
        console.log(toLine(row, await roundsOf(row, load, { ours, reference }, how)));
      } finally {
        await ours.stop();
      }
    }
  } finally {
    await reference.stop();
  }
}

interface Pair {
  readonly ours: Target;
  readonly reference: Target;
}

/** Rounds that both brokers went through; the first one warms both up and is thrown away. */
async function roundsOf(row: Row, load: Amqpload, { ours, reference }: Pair, how: Effort): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let number = 0; number <= how.rounds; number++) {
    try {
      const round = {
        ours: await row.measure(load, ours, how.scale),
        reference: await row.measure(load, reference, how.scale),
      };
      if (number > 0) rounds.push(round);
    } catch (error) {
      console.error(`${row.name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return rounds;
}
