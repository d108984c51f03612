// The two kinds of rows: one that is measured on both brokers and judged by ratios, and one that is ours alone.
// Used by rows/*, own/* and main. Separate because it is the contract between them.
import type { Amqpload, Sample } from "./amqpload.ts";
import type { Target } from "./targets.ts";

/** What a ratio gateway : RabbitMQ must reach; absent: it is only shown. */
export interface Bounds {
  /** Messages a second, at least. */
  readonly throughput?: number;
  /** CPU per message, at most. */
  readonly cpu?: number;
  /** Confirm latency at the median, at most. */
  readonly latency?: number;
}

/** A row of the table that both brokers run. */
export interface Row {
  readonly name: string;
  readonly must: Bounds;
  readonly aim: Bounds;
  /** `scale` 1 is a full round; smaller ones send fewer messages. */
  measure(load: Amqpload, target: Target, scale: number): Promise<Sample>;
}

/** How much a run does. */
export interface Effort {
  readonly rounds: number;
  readonly scale: number;
}

/** What a row of ours alone came to. */
export interface Finding {
  /** One line a figure. */
  readonly lines: readonly string[];
  /** Undefined where it is only reported. */
  readonly met: boolean | undefined;
}

/** A row that needs no reference. */
export interface OwnRow {
  readonly name: string;
  readonly must: string;
  measure(load: Amqpload, effort: Effort): Promise<Finding>;
}

/** A row whose every round is one call of amqpload: `{n}` in it is the scaled number of messages. */
export function loadRow(
  name: string,
  calls: string | readonly string[],
  messages: number,
  must: Bounds,
  aim: Bounds,
  least = 100,
): Row {
  return {
    name,
    must,
    aim,
    measure: (load, target, scale) => {
      const count = `${Math.max(least, Math.round(messages * scale))}`;
      return load.run(
        [calls].flat().map((call) => call.replaceAll("{n}", count)),
        target,
      );
    },
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
