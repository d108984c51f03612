// 1,000 binds on one queue: one after another, over 20 channels at once, and without waiting for any answer.
import amqp from "amqplib";
import { AmqpSocket } from "../../harness/socket.ts";
import type { Finding, OwnRow } from "../row.ts";
import { startOurs } from "../targets.ts";

const BINDS = 1_000;
const CHANNELS = 20;
const MUST_SECONDS = 3;

export const BINDS_ROW: OwnRow = {
  name: `${BINDS} binds on one queue`,
  must: `no-wait or over ${CHANNELS} channels within ${MUST_SECONDS} s; one by one: reported`,
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
      const unawaited = await withoutWaiting(target.port);
      const alone = await seconds("alone", (index) => [first.bindQueue("alone", "topics", `a.${index}.*.c`)]);
      return {
        lines: [
          `no-wait: ${unawaited.toFixed(2)} s`,
          `over ${CHANNELS} channels: ${together.toFixed(2)} s`,
          `one by one: ${alone.toFixed(2)} s (${((alone / BINDS) * 1_000).toFixed(1)} ms each)`,
        ],
        met: Math.min(unawaited, together) <= MUST_SECONDS,
      };
    } finally {
      await connection.close();
      await target.stop();
    }
  },
};

/** Seconds until a command behind them is answered. */
async function withoutWaiting(port: number): Promise<number> {
  const socket = await AmqpSocket.open({ host: "127.0.0.1", port });
  try {
    const channel = await socket.channel();
    const queue = "unawaited";
    socket.send(channel, "queue.declare", { queue, durable: true });
    await socket.expect("queue.declare-ok");
    const began = performance.now();
    for (let index = 0; index < BINDS; index++)
      socket.send(channel, "queue.bind", { queue, exchange: "topics", routingKey: `a.${index}.*.c`, nowait: true });
    socket.send(channel, "queue.declare", { queue, passive: true });
    await socket.expect("queue.declare-ok", 60_000);
    return (performance.now() - began) / 1_000;
  } finally {
    socket.destroy();
  }
}
