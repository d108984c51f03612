// One worker and two: what a second process on the port brings where there is a core for it.
import { type Finding, median, type OwnRow } from "../row.ts";
import { startOurs } from "../targets.ts";

const WORKERS = [1, 2];

export const WORKERS_ROW: OwnRow = {
  name: "4 + 4 connections on 1 and 2 workers, 1 KiB",
  must: "reported",
  measure: async (load, { rounds, scale }): Promise<Finding> => {
    const lines: string[] = [];
    for (const workers of WORKERS) {
      const target = await startOurs({ args: ["--workers", `${workers}`] });
      try {
        const call = `-m flow -d -w 250 -f 100 -c 4 -C 4 -Q 4 -s 1024 -n ${Math.round(40_000 * scale)}`;
        const all = [];
        for (let round = 0; round < Math.min(rounds, 3); round++) all.push(await load.run(call, target));
        const rate = median(all.map(({ perSecond }) => perSecond)).toFixed(0);
        lines.push(`${workers}: ${rate}/s, ${median(all.map(({ micros }) => micros)).toFixed(0)} µs a message`);
      } finally {
        await target.stop();
      }
    }
    return { lines, met: undefined };
  },
};
