// The soak by hand, half an hour unless told otherwise:
//   node e2e/soak/main.ts [--seconds 1800] [--seed 1] [--gateways 2] [--growth 0.5]
// `--growth`: MiB a minute by which a process may grow after warming up. Needs the product built and NATS_SERVER_BIN.
// Exit code 1 where something leaked.
import { parseArgs } from "node:util";
import { releaseAll } from "../harness/owned.ts";
import { growths, judge, soak, told } from "./soak.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    seconds: { type: "string", default: "1800" },
    gateways: { type: "string", default: "2" },
    growth: { type: "string", default: "0.5" },
  },
});

// An exit takes the processes away, a signal alone would not.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

try {
  const result = await soak({
    seed: Number(values.seed),
    seconds: Number(values.seconds),
    gateways: Number(values.gateways),
    tell: (line) => console.log(line),
  });
  const { work, before, after, end, memory } = result;
  console.log(told(work));
  for (const [when, counts] of Object.entries({ before, after, end })) {
    const { messages, consumers, keys, leases, connections, subscriptions } = counts;
    const text = `${messages} messages, ${consumers.length} consumers, ${keys.length} keys, ${leases} leases`;
    console.log(`${when}: ${text}, ${connections} connections, ${subscriptions} subscriptions`);
  }
  for (const [name, growth] of Object.entries(growths(memory))) console.log(`${name}: ${growth.toFixed(3)} MiB/min`);
  const wrong = judge(result, Number(values.growth));
  for (const line of result.warnings) console.log(line);
  for (const line of wrong) console.log(`WRONG: ${line}`);
  if (wrong.length > 0) process.exitCode = 1;
} finally {
  await releaseAll();
}
