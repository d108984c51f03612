/** Types of readme.mjs, for the test that holds README.md to it. */
import type { NotImplemented } from "@amqp/broker";
import type { Setting } from "@amqp/gateway";

export function readmeWith(
  text: string,
  rows: readonly NotImplemented[],
  settings: Readonly<Record<string, Setting>>,
): string;
