// Publish + consume + ack beside queues that nobody uses: each ack of the bus visits every consumer of the log
// (interest retention, design §5), so this one is reported and explained, not bounded.
import { type Finding, median, type OwnRow } from "../row.ts";
import { startOurs } from "../targets.ts";

const IDLE = 1_000;

export const IDLE_QUEUES: OwnRow = {
  name: `publish + consume + ack beside ${IDLE} idle queues`,
  must: "reported",
  measure: async (load, { rounds, scale }): Promise<Finding> => {
    const target = await startOurs();
    try {
      const messages = Math.round(20_000 * scale);
      const flow = async (): Promise<{ micros: number; perSecond: number }> => {
        const all = [];
        for (let round = 0; round < Math.min(rounds, 3); round++) {
          all.push(await load.run(`-m flow -d -w 1000 -f 100 -s 1024 -n ${messages}`, target));
        }
        return {
          micros: median(all.map(({ micros }) => micros)),
          perSecond: median(all.map(({ perSecond }) => perSecond)),
        };
      };
      const alone = await flow();
      await load.run(`-m declare -x -n ${IDLE} -q idle -t 0`, target);
      const beside = await flow();
      return {
        lines: [
          `alone ${alone.micros.toFixed(0)} µs, beside ${IDLE} ${beside.micros.toFixed(0)} µs a message; ` +
            `rate ${(beside.perSecond / alone.perSecond).toFixed(2)} of that alone`,
        ],
        met: undefined,
      };
    } finally {
      await target.stop();
    }
  },
};
