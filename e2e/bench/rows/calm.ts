// What is not about throughput: latency at a steady rate, and the churn of channels, connections and queues.
import { loadRow, type Row } from "../row.ts";

export const CALM: readonly Row[] = [
  loadRow(
    "confirm latency at 1,000/s, 1 KiB, ack",
    "-m rate -r 1000 -d -w 1000 -f 100 -s 1024 -n {n}",
    3_000,
    { latency: 0.6 },
    { latency: 0.45 },
    1_000,
  ),
  loadRow("channel open + close", "-m chans -P 4 -n {n}", 6_000, { throughput: 3 }, { throughput: 5 }),
  loadRow("connection open + close", "-m conns -n {n}", 400, {}, {}),
  loadRow("queue declare + delete", "-m queues -P 4 -n {n}", 600, { throughput: 1 }, { throughput: 1.5 }),
];
