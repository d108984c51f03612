// Publishing and consuming at once, fan-out, and reading what has piled up.
import { loadRow, type Row } from "../row.ts";

const FLOW = "-m flow -d -w 1000";

export const CONSUME: readonly Row[] = [
  loadRow(
    "publish + consume + ack, prefetch 100, 1 KiB",
    `${FLOW} -f 100 -s 1024 -n {n}`,
    45_000,
    { throughput: 1.4, cpu: 0.7 },
    { throughput: 2, cpu: 0.5 },
  ),
  loadRow(
    "publish + consume + ack, prefetch 100, 12 B",
    `${FLOW} -f 100 -s 12 -n {n}`,
    60_000,
    { throughput: 1.1, cpu: 0.9 },
    { throughput: 1.5, cpu: 0.65 },
  ),
  loadRow(
    "publish + consume no-ack, 1 KiB",
    `${FLOW} -N -s 1024 -n {n}`,
    45_000,
    { throughput: 1, cpu: 1 },
    { throughput: 1.5, cpu: 0.7 },
  ),
  loadRow(
    "fan-out 1 to 10, window 1000, ack, 1 KiB",
    `${FLOW} -f 100 -e fx -E fanout -Q 10 -C 10 -F 10 -s 1024 -n {n}`,
    6_750,
    { throughput: 2.5, cpu: 0.4 },
    { throughput: 4, cpu: 0.25 },
  ),
  loadRow(
    "reading a backlog, 1 KiB, ack each",
    ["-m pub -x -d -s 1024 -n {n} -q backlog", "-m con -f 100 -s 1024 -n {n} -q backlog"],
    60_000,
    { throughput: 1.2 },
    { throughput: 1.8 },
  ),
];
