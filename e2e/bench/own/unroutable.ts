// Mandatory publishes that nothing takes, beside few and beside many queues: a scan of queues would show.
import { Buffer } from "node:buffer";
import { AmqpSocket } from "../../harness/socket.ts";
import { cpuSeconds } from "../processes.ts";
import { type Finding, median, type OwnRow } from "../row.ts";
import { startOurs, type Target } from "../targets.ts";

const FEW = 100;
const MANY = 10_000;
const MUST = 1.2;
const BATCH = 100;

export const UNROUTABLE: OwnRow = {
  name: "mandatory unroutable publishes beside many queues",
  must: `CPU at most ${MUST} times that beside ${FEW}`,
  measure: async (load, { rounds, scale }): Promise<Finding> => {
    const many = scale < 1 ? MANY / 10 : MANY;
    const target = await startOurs({ args: ["--max-queues", `${MANY + FEW}`] });
    try {
      const messages = Math.round(20_000 * scale);
      const micros = async (): Promise<number> => {
        const all: number[] = [];
        for (let round = 0; round <= Math.min(rounds, 3); round++) all.push(await publish(target, messages));
        return median(all.slice(1)); // the first one warms the code up
      };
      await load.run(`-m declare -x -n ${FEW} -q few -t 0`, target);
      const few = await micros();
      await load.run(`-m declare -x -n ${many - FEW} -q many -t 0`, target);
      const beside = await micros();
      const ratio = beside / few;
      return {
        lines: [
          `beside ${FEW} queues ${few.toFixed(1)} µs, beside ${many} ${beside.toFixed(1)} µs: ${ratio.toFixed(2)}`,
        ],
        met: ratio <= MUST,
      };
    } finally {
      await target.stop();
    }
  },
};

/** CPU per message, microseconds. */
async function publish(target: Target, messages: number): Promise<number> {
  const socket = await AmqpSocket.open({ host: "127.0.0.1", port: target.port });
  try {
    const channel = await socket.channel();
    socket.send(channel, "exchange.declare", { exchange: "unbound", type: "topic", durable: true });
    await socket.expect("exchange.declare-ok");
    const pids = target.pids();
    const before = cpuSeconds(pids);
    const body = Buffer.alloc(100, "x");
    for (let sent = 0; sent < messages; sent += BATCH) {
      // A key that never repeats: nothing about it is remembered.
      for (let i = 0; i < BATCH; i++) {
        const routingKey = `no.one.${sent + i}`;
        socket.publish(channel, { exchange: "unbound", routingKey, mandatory: true }, body);
      }
      for (let i = 0; i < BATCH; i++) {
        await socket.expect("basic.return");
        await socket.expectContent();
      }
    }
    return ((cpuSeconds(pids) - before) * 1e6) / messages;
  } finally {
    socket.destroy();
  }
}
