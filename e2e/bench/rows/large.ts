// Large bodies: copies and buffers instead of messages a second.
import { loadRow, type Row } from "../row.ts";

export const LARGE: readonly Row[] = [
  loadRow(
    "publish + consume + ack, 16 KiB",
    "-m flow -d -w 1000 -f 100 -s 16384 -n {n}",
    10_000,
    { throughput: 0.6, cpu: 1.2 },
    { throughput: 1, cpu: 0.9 },
  ),
  loadRow(
    "confirmed publish, 1 MiB",
    "-m pub -d -w 1000 -s 1048576 -n {n}",
    300,
    { throughput: 0.3 },
    { throughput: 0.5 },
  ),
  loadRow(
    "publish + consume + ack, 1 MiB",
    "-m flow -d -w 1000 -f 100 -s 1048576 -n {n}",
    300,
    { throughput: 0.2 },
    { throughput: 0.35 },
  ),
];
