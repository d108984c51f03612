// Confirmed publishes alone: into one queue, and through a topic exchange with many bindings.
import { loadRow, type Row } from "../row.ts";

const SMALL = { must: { throughput: 1.5, cpu: 0.65 }, aim: { throughput: 2, cpu: 0.5 } };
const KIB = { must: { throughput: 1.8, cpu: 0.55 }, aim: { throughput: 2.5, cpu: 0.42 } };
const TOPIC = { must: { throughput: 3, cpu: 0.4 }, aim: { throughput: 4, cpu: 0.25 } };

export const PUBLISH: readonly Row[] = [
  loadRow("confirmed publish, window 100, 1 KiB", "-m pub -d -w 100 -s 1024 -n {n}", 30_000, KIB.must, KIB.aim),
  loadRow("confirmed publish, window 1000, 1 KiB", "-m pub -d -w 1000 -s 1024 -n {n}", 45_000, KIB.must, KIB.aim),
  loadRow("confirmed publish, window 1000, 12 B", "-m pub -d -w 1000 -s 12 -n {n}", 60_000, SMALL.must, SMALL.aim),
  loadRow(
    "topic, 1,000 bindings over 100 queues, window 1000, 1 KiB",
    "-m pub -w 1000 -e tx -E topic -b 1000 -Q 100 -K a.0.b -s 1024 -n {n}",
    37_500,
    TOPIC.must,
    TOPIC.aim,
  ),
];
