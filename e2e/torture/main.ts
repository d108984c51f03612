// The torture by hand, as long as one likes:
//   node e2e/torture/main.ts --seed 1 --seconds 600 --faults gateway,bus [--gateways 3] [--servers 1|3]
//     [--rate 200] [--runs 1] [--out FOLDER]
// Each further run takes the next seed. Needs the product built (it is run as `npm start` runs it) and NATS_SERVER_BIN.
// Exit code 1 where a law was broken. `--out` keeps the history and the gateways' logs of a run that failed.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { releaseAll } from "../harness/owned.ts";
import { parseFaults } from "./faults.ts";
import { report, type TortureOptions, type TortureResult, torture } from "./run.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    seconds: { type: "string", default: "60" },
    faults: { type: "string", default: "gateway,bus" },
    gateways: { type: "string", default: "3" },
    servers: { type: "string", default: "1" },
    rate: { type: "string", default: "200" },
    runs: { type: "string", default: "1" },
    out: { type: "string" },
  },
});

// An exit takes the processes away, a signal alone would not.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

for (let run = 0; run < Number(values.runs); run++) {
  const options: TortureOptions = {
    seed: Number(values.seed) + run,
    seconds: Number(values.seconds),
    faults: parseFaults(values.faults),
    gateways: Number(values.gateways),
    servers: values.servers === "3" ? 3 : 1,
    rate: Number(values.rate),
  };
  try {
    const result = await torture(options);
    console.log(`seed ${options.seed}: ${report(options, result)}`);
    if (result.violations.length > 0) {
      process.exitCode = 1;
      if (values.out !== undefined) keep(values.out, options.seed, result);
    }
  } catch (error) {
    console.error(`seed ${options.seed}:`, error);
    process.exitCode = 1;
  } finally {
    await releaseAll();
  }
}

function keep(folder: string, seed: number, { history, violations, logs }: TortureResult): void {
  mkdirSync(folder, { recursive: true });
  const { drained, ...rest } = history;
  writeFileSync(join(folder, `${seed}.json`), JSON.stringify({ ...rest, drained: [...drained], violations }));
  writeFileSync(join(folder, `${seed}.log`), logs.map(({ gateway, text }) => `${gateway} ${text}`).join("\n"));
}
