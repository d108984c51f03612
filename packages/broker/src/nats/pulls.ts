/**
 * All pulls of one NATS connection.
 *
 * Responsibilities: opens lines, tells them of the connection, watches for what the bus forgot.
 * Used by: bus.ts. Separate because lines share a budget, an inbox prefix and one timer.
 */
import { createInbox } from "@nats-io/nats-core";
import type { PullLine, PullSink } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import { Budget } from "./budget.ts";
import type { Link } from "./link.ts";
import { JetStreamLine } from "./pull-line.ts";
import { Width } from "./width.ts";

/** What a line and its asks need of their surroundings. */
export interface PullContext {
  readonly link: Link;
  readonly budget: Budget;
  readonly log: Log;
  /** How long a waiting request lives, milliseconds: no longer than the lease. */
  readonly expires: number;
  /** A new subject for answers. */
  inbox(): string;
  nextSubject(queue: string): string;
  /** What is known of the queue's message sizes. */
  width(queue: string): Width;
  /** The queue is gone, and what was known of it is void. */
  forget(queue: string): void;
  /** Is there surely no such cursor? */
  gone(queue: string): Promise<boolean>;
}

export interface PullsOptions {
  readonly link: Link;
  readonly log: Log;
  readonly inboxPrefix: string;
  readonly expires: number;
  nextSubject(queue: string): string;
  gone(queue: string): Promise<boolean>;
}

/** Subject, ack subject and headers of a message, beyond what the server counts as its payload. */
const LARGEST_SLACK: number = 16 * 1024;

export class Pulls {
  readonly #context: PullContext;
  readonly #lines: Set<JetStreamLine> = new Set();
  /** Outlives a queue's lines, until {@link forget}. */
  readonly #widths: Map<string, Width> = new Map();
  readonly #tick: NodeJS.Timeout;

  constructor(options: PullsOptions) {
    const base = createInbox(options.inboxPrefix);
    let generation = 0;
    this.#context = {
      link: options.link,
      budget: new Budget(options.link.maxPayload + LARGEST_SLACK),
      log: options.log,
      expires: options.expires,
      inbox: () => `${base}.${++generation}`,
      nextSubject: options.nextSubject,
      gone: options.gone,
      width: (queue) => this.#widthOf(queue),
      forget: (queue) => this.#widths.delete(queue),
    };
    this.#tick = setInterval(() => {
      const now = performance.now();
      for (const line of this.#lines) line.overdue(now);
    }, 1_000);
    this.#tick.unref();
  }

  open(queue: string, sink: PullSink): PullLine {
    const line = new JetStreamLine(this.#context, queue, sink, (closed) => {
      this.#lines.delete(closed);
      this.#context.budget.lines = this.#lines.size;
    });
    this.#lines.add(line);
    this.#context.budget.lines = this.#lines.size;
    return line;
  }

  /** The cursor is deleted, or read here no more: ends whatever is asked of it, and what was learnt of it goes too. */
  forget(queue: string): void {
    this.#widths.delete(queue);
    for (const line of [...this.#lines]) if (line.queue === queue) line.gone();
  }

  down(): void {
    for (const line of [...this.#lines]) line.down();
  }

  up(): void {
    for (const line of [...this.#lines]) line.up();
  }

  #widthOf(queue: string): Width {
    let width = this.#widths.get(queue);
    if (width === undefined) {
      width = new Width();
      this.#widths.set(queue, width);
    }
    return width;
  }

  async close(): Promise<void> {
    clearInterval(this.#tick);
    await Promise.all([...this.#lines].map((line) => line.takeBack()));
  }
}
