/** Types of readme.mjs, for the test that holds README.md to it. */
import type { NotImplemented } from "@amqp/broker";
import type { Setting } from "@amqp/gateway";

export function refusalsTable(rows: readonly NotImplemented[]): string;
export function settingsTable(settings: Readonly<Record<string, Setting>>): string;
export function replaceBetween(text: string, name: string, content: string): string;
export function readmeWith(
  text: string,
  rows: readonly NotImplemented[],
  settings: Readonly<Record<string, Setting>>,
): string;
