/**
 * A real bus for the queue's tests: nats-server, the Bus on it, a topology, and cursors. One site a test file; each test
 * takes names of its own.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { openBucket, type Queue, Topology } from "@amqp/topology";
import { antichain, implicitFilter, isFault, toFilters } from "@amqp/translator";
import { expect } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Bus, PublishSink } from "../../src/core/bus.ts";
import { type CursorOptions, QueueCursor } from "../../src/core/queue.ts";
import { type JetStreamBus, openBus } from "../../src/nats/bus.ts";

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Until it holds; fails after `timeout` milliseconds with what was seen last. */
export async function until(holds: () => boolean | Promise<boolean>, timeout = 5_000): Promise<void> {
  const end = Date.now() + timeout;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never came true: ${holds.toString()}`);
    await sleep(5);
  }
}

export class Site {
  readonly #server: NatsServer;
  readonly #cursors: Set<QueueCursor> = new Set<QueueCursor>();
  #busField: JetStreamBus | undefined;
  #topologyField: Topology | undefined;
  lease: boolean = true;
  restarts = 0;

  private constructor(server: NatsServer) {
    this.#server = server;
  }

  static async open(): Promise<Site> {
    const site = new Site(await NatsServer.start());
    try {
      await site.#begin();
      return site;
    } catch (error) {
      await site.#server.stop();
      throw error;
    }
  }

  async #begin(): Promise<void> {
    const [publishing, delivering] = [await this.#server.connect(), await this.#server.connect()];
    this.#busField = await openBus({
      publishing,
      delivering,
      stream: "AMQP",
      root: "amqp",
      log: QUIET,
      listener: {
        away: () => {
          for (const cursor of this.#cursors) cursor.away();
        },
        back: (restarted) => {
          this.restarts++;
          for (const cursor of this.#cursors) cursor.back(restarted);
        },
        full: () => {},
        room: () => {},
      },
    });
    this.#topologyField = await Topology.open(await openBucket(delivering), { root: "amqp", lost: () => {} });
  }

  get bus(): JetStreamBus {
    if (this.#busField === undefined) throw new Error("not open");
    return this.#busField;
  }

  get topology(): Topology {
    if (this.#topologyField === undefined) throw new Error("not open");
    return this.#topologyField;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#cursors].map((cursor) => cursor.close().catch(() => undefined)));
    await this.topology.close();
    await this.bus.close();
    await this.#server.stop();
  }

  /** kill -9 of the bus, and the same one again. Resolves when the gateway's side is back. */
  async crash(pause = 0): Promise<void> {
    const { restarts } = this;
    await this.#server.restart(pause);
    await until(() => this.restarts > restarts, 10_000);
  }

  /** A queue, ready, with its cursor. */
  async declare(name: string): Promise<Queue> {
    const record = { durable: true, autoDelete: false, exclusive: null, type: "classic", arguments: "" } as const;
    const made = await this.topology.createQueue(name, { ...record, state: "making", from: 0, consumed: false });
    if (made === "conflict") throw new Error("conflict");
    await this.bus.createCursor({ queue: name, filters: [implicitFilter(name)], revision: 1, queueId: made.id });
    const ready = await this.topology.updateQueue(made, { state: "ready", from: await this.bus.lastSequence() });
    if (ready === "conflict") throw new Error("conflict");
    return ready;
  }

  /** Binds on a direct exchange: the filter first, then the interval. */
  async bind(name: string, exchange: string, key: string): Promise<void> {
    await this.widen(name, exchange, key);
    await this.openInterval(name, exchange, key, await this.bus.lastSequence());
  }

  async widen(name: string, exchange: string, key: string): Promise<void> {
    const filters = toFilters("direct", exchange, key);
    if (isFault(filters)) throw new Error(filters.text);
    const queueId = this.topology.queue(name)?.id ?? 0;
    const all = antichain([...this.topology.filters(name), ...filters]);
    await this.bus.updateCursor({ queue: name, filters: all, revision: 1, queueId });
  }

  async openInterval(
    queue: string,
    exchange: string,
    key: string,
    from: number,
    topology: Topology = this.topology,
  ): Promise<void> {
    const queueId = topology.queue(queue)?.id ?? 0;
    const present = topology.binding(queue, exchange, key, "");
    const intervals = [...(present?.intervals ?? []), { from, queueId, exchangeId: 1, kind: "direct" } as const];
    await topology.writeBinding({ queue, exchange, key, arguments: "" }, intervals, present);
  }

  /** Another replica's mirror: the first one may be behind what is written through it. */
  async otherTopology(): Promise<Topology> {
    return Topology.open(await openBucket(await this.#server.connect()), { root: "amqp", lost: () => {} });
  }

  async unbind(queue: string, exchange: string, key: string): Promise<void> {
    const present = this.topology.binding(queue, exchange, key, "");
    const until = await this.bus.lastSequence();
    const intervals = (present?.intervals ?? []).map((interval) => ({ until, ...interval }));
    await this.topology.writeBinding({ queue, exchange, key, arguments: "" }, intervals, present);
  }

  cursor(name: string, options: Partial<CursorOptions> = {}): QueueCursor {
    return this.cursorOn(name, this.bus, options);
  }

  cursorOn(name: string, bus: Bus, options: Partial<CursorOptions> = {}): QueueCursor {
    const cursor: QueueCursor = new QueueCursor(name, bus, this.topology, {
      // In these tests a message's properties are its lifetime in eight digits, or two octets of zero.
      expirationOf: (properties) => (properties.length === 2 ? undefined : Number(Buffer.from(properties).toString())),
      suspectBelow: 0,
      holdsLease: () => this.lease,
      isAlone: () => true,
      heldElsewhere: async () => new Set(),
      sweep: async () => {
        await cursor.sweep();
        return cursor.written;
      },
      doubt: async (queue, suspect) => {
        const record = this.topology.queue(queue);
        if (record !== undefined) await this.topology.updateQueue(record, { suspect });
      },
      ...options,
    });
    this.#cursors.add(cursor);
    return cursor;
  }

  /** As if the process had died: nothing is handed back, and nobody remembers. */
  abandon(cursor: QueueCursor): void {
    this.#cursors.delete(cursor);
  }

  /** Messages whose bodies are the numbers from `first`; resolves when all are stored. */
  publish(
    subject: string,
    count: number,
    options: { readonly first?: number; readonly lifetime?: number } = {},
  ): Promise<void> {
    const { first = 0, lifetime } = options;
    return new Promise((resolve, reject) => {
      let left = count;
      const sink: PublishSink = {
        published: (_, outcome) => {
          if (outcome !== "stored") reject(new Error(outcome));
          if (--left === 0) resolve();
        },
      };
      for (let number = first; number < first + count; number++) {
        const properties = lifetime === undefined ? Buffer.alloc(2) : Buffer.from(String(lifetime).padStart(8, "0"));
        this.bus.publish(subject, properties, [Buffer.from(String(number))], sink, number);
      }
    });
  }

  /** Nothing is left of it at the bus: neither ready nor delivered. */
  async expectEmpty(name: string): Promise<void> {
    await this.bus.settled(name);
    expect(await this.bus.cursorState(name)).toMatchObject({ pending: 0, ackPending: 0 });
  }
}
