// The cost of everything as it grows, as curves:
//   node e2e/bench/growth/main.ts [--only connections|queues|bindings|body|workers] [--out docs/curves]
// Needs what the bench needs, but for RabbitMQ: rates are this machine's, the curves' shapes are what they tell.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { releaseAll } from "../../harness/owned.ts";
import { Amqpload } from "../amqpload.ts";
import { toSvg } from "./curve.ts";
import { GROWTHS } from "./growth.ts";

const { values } = parseArgs({
  options: { only: { type: "string", default: "" }, out: { type: "string", default: "docs/curves" } },
});

// An exit takes the processes away, a signal alone would not.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const load = Amqpload.build();
try {
  mkdirSync(values.out, { recursive: true });
  for (const { name, measure } of GROWTHS.filter((growth) => growth.name.includes(values.only))) {
    console.log(name);
    const curves = await measure(load, (line) => console.log(line));
    for (const [at, curve] of curves.entries())
      writeFileSync(join(values.out, `${name}-${at === 0 ? "rate" : "cost"}.svg`), toSvg(curve));
  }
} finally {
  load.remove();
  await releaseAll();
}
