// Memory of the gateway for connections that do nothing, one channel each.
import { type Finding, median, type OwnRow } from "../row.ts";
import { startOurs } from "../targets.ts";

/** Enough that the growth of the heap's young generation, which is no connection's, is spread thin. */
const CONNECTIONS = 4_000;
const MUST_KIB = 30;

export const IDLE_CONNECTIONS: OwnRow = {
  name: "memory of the gateway per idle connection",
  must: `at most ${MUST_KIB} KiB`,
  measure: async (load, { rounds }): Promise<Finding> => {
    const kib: number[] = [];
    for (let round = 0; round < Math.min(rounds, 3); round++) {
      const target = await startOurs();
      try {
        // The first ones warm the code up and grow the heap's first pages.
        await load.run("-m idle -n 200 -t 1", target);
        const { grownKib } = await load.run(`-m idle -n ${CONNECTIONS} -t 2`, target);
        kib.push(grownKib / CONNECTIONS);
      } finally {
        await target.stop();
      }
    }
    return {
      lines: [`${kib.map((each) => each.toFixed(1)).join(", ")} KiB a connection`],
      met: median(kib) <= MUST_KIB,
    };
  },
};
