// 1,000 binds on one queue: one after another, and over 20 channels at once.
import amqp from "amqplib";
import type { Finding, OwnRow } from "../row.ts";
import { startOurs } from "../targets.ts";

const BINDS = 1_000;
const CHANNELS = 20;
const MUST_SECONDS = 3;

export const BINDS_ROW: OwnRow = {
  name: `${BINDS} binds on one queue`,
  must: `over ${CHANNELS} channels within ${MUST_SECONDS} s; one by one: reported`,
  measure: async (): Promise<Finding> => {
    const target = await startOurs();
    const connection = await amqp.connect(target.gateway.url);
    try {
      const channels = await Promise.all(Array.from({ length: CHANNELS }, () => connection.createChannel()));
      const [first] = channels;
      if (first === undefined) throw new Error("no channel");
      const seconds = async (queue: string, bind: (index: number) => Promise<unknown>[]): Promise<number> => {
        await first.assertExchange("topics", "topic", { durable: true });
        await first.assertQueue(queue, { durable: true });
        const began = performance.now();
        for (let index = 0; index < BINDS; ) {
          const binding = bind(index);
          await Promise.all(binding);
          index += binding.length;
        }
        return (performance.now() - began) / 1_000;
      };
      const together = await seconds("together", () =>
        Array.from({ length: BINDS }, async (_, index) =>
          channels[index % CHANNELS]?.bindQueue("together", "topics", `a.${index}.*.c`),
        ),
      );
      const alone = await seconds("alone", (index) => [first.bindQueue("alone", "topics", `a.${index}.*.c`)]);
      return {
        lines: [
          `over ${CHANNELS} channels: ${together.toFixed(2)} s`,
          `one by one: ${alone.toFixed(2)} s (${((alone / BINDS) * 1_000).toFixed(1)} ms each)`,
        ],
        met: together <= MUST_SECONDS,
      };
    } finally {
      await connection.close();
      await target.stop();
    }
  },
};
