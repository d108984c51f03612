// Nanoseconds of a call, as the median of several runs long enough to mean something.
// Used by micro/codec and micro/translator. Separate because both measure the same way.
import { median } from "../row.ts";

const RUNS = 5;
const RUN_MS = 120;
const BATCH = 64;

/** What came of the calls is kept here, so that none of them is optimised away. */
let sink: unknown;

/** Nanoseconds a call. */
export function nanoseconds(call: () => unknown): number {
  const runs: number[] = [];
  for (let run = 0; run <= RUNS; run++) {
    const began = performance.now();
    let calls = 0;
    while (performance.now() - began < RUN_MS) {
      for (let i = 0; i < BATCH; i++) sink = call();
      calls += BATCH;
    }
    if (run > 0) runs.push(((performance.now() - began) * 1e6) / calls); // the first one warms up
  }
  return median(runs);
}

/** Something measured. */
export interface Figure {
  readonly name: string;
  readonly nanoseconds: number;
}

export function lineOf({ name, nanoseconds: each }: Figure): string {
  return `| ${name} | ${each.toFixed(0)} |`;
}

/** Keeps the compiler from knowing that nobody looks. */
export function looked(): boolean {
  return sink !== undefined;
}
