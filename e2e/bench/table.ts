// The table: min, median and max of the ratios of each row's rounds, and a verdict.
// Used by main. Separate because it is pure: samples in, lines out.
import type { Sample } from "./amqpload.ts";
import { type Bounds, median, type Row } from "./row.ts";

/** One round: both brokers, one after the other. */
export interface Round {
  readonly ours: Sample;
  readonly reference: Sample;
}

export const HEADER: readonly string[] = [
  "| row | rounds | throughput min/med/max (must) | CPU a message min/med/max (must) | ours µs (gateway + bus) | reference µs | verdict |",
  "|---|---|---|---|---|---|---|",
];

/** One line of the table. */
export function toLine(row: Row, rounds: readonly Round[]): string {
  if (rounds.length === 0) return `| ${row.name} | 0 | | | | | failed |`;
  const throughput = rounds.map(({ ours, reference }) => ours.perSecond / reference.perSecond);
  const cpu = rounds.map(({ ours, reference }) => ours.micros / Math.max(reference.micros, 1e-9));
  const latency = rounds.flatMap(({ ours, reference }) =>
    ours.confirmP50 === undefined || !reference.confirmP50 ? [] : [ours.confirmP50 / reference.confirmP50],
  );
  const parts = [0, 1].map((part) => median(rounds.map(({ ours }) => ours.microsOf[part] ?? 0)));
  const first =
    row.must.latency === undefined
      ? `${spread(throughput)}${bound("≥", row.must.throughput)}`
      : `p50 ${spread(latency)}${bound("≤", row.must.latency)}`;
  return `| ${[
    row.name,
    rounds.length,
    first,
    `${spread(cpu)}${bound("≤", row.must.cpu)}`,
    `${micros(median(rounds.map(({ ours }) => ours.micros)))} (${parts.map(micros).join(" + ")})`,
    micros(median(rounds.map(({ reference }) => reference.micros))),
    verdict(row, median(throughput), median(cpu), median(latency)),
  ].join(" | ")} |`;
}

/** The aim, the must, or which bound is missed. */
function verdict(row: Pick<Row, "must" | "aim">, throughput: number, cpu: number, latency: number): string {
  const missed = missing(row.must, throughput, cpu, latency);
  if (missed.length > 0) return `under must: ${missed.join(", ")}`;
  if (Object.keys(row.must).length === 0) return "reported";
  return missing(row.aim, throughput, cpu, latency).length === 0 ? "aim" : "must";
}

function missing(bounds: Bounds, throughput: number, cpu: number, latency: number): string[] {
  return [
    ...(throughput < (bounds.throughput ?? 0) ? ["throughput"] : []),
    ...(cpu > (bounds.cpu ?? Number.POSITIVE_INFINITY) ? ["CPU"] : []),
    ...(latency > (bounds.latency ?? Number.POSITIVE_INFINITY) ? ["latency"] : []),
  ];
}

function spread(values: readonly number[]): string {
  return [Math.min(...values), median(values), Math.max(...values)].map((value) => value.toFixed(2)).join("/");
}

function bound(sign: string, value: number | undefined): string {
  return value === undefined ? "" : ` (${sign} ${value})`;
}

function micros(value: number): string {
  return value < 100 ? value.toFixed(1) : value.toFixed(0);
}
