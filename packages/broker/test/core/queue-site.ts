/**
 * A real bus for the queue's tests: nats-server, the Bus on it, a topology, and clients that note what they are given.
 * One site a test file; each test takes names of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openBucket, type Queue, Topology } from "@amqp/topology";
import { antichain, implicitFilter, isFault, toFilters } from "@amqp/translator";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { expect } from "vitest";
import type { Bus, PublishSink } from "../../src/core/bus.ts";
import { Credit } from "../../src/core/credit.ts";
import type { Delivery } from "../../src/core/message.ts";
import { type CursorOptions, QueueCursor } from "../../src/core/queue.ts";
import type { Subscriber } from "../../src/core/verbs.ts";
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

/** A consumer with a prefetch: notes what it is given, grants when it settles. */
export class Client implements Subscriber {
  readonly credits: readonly Credit[];
  readonly got: Delivery[] = [];
  readonly unsettled: Set<Delivery> = new Set<Delivery>();
  most = 0;
  isCancelled: boolean = false;
  /** Runs in the turn of each delivery. */
  onDeliver: ((delivery: Delivery) => void) | undefined;

  constructor(prefetch: number | readonly Credit[]) {
    this.credits = typeof prefetch === "number" ? [new Credit(prefetch)] : prefetch;
  }

  deliver(delivery: Delivery): void {
    this.got.push(delivery);
    this.unsettled.add(delivery);
    this.most = Math.max(this.most, this.unsettled.size);
    this.onDeliver?.(delivery);
  }

  cancelled(): void {
    this.isCancelled = true;
  }

  get numbers(): number[] {
    return this.got.map(numberOf);
  }

  ack(delivery: Delivery): void {
    this.unsettled.delete(delivery);
    delivery.settle("complete");
    for (const credit of this.credits) credit.grant(1);
  }

  ackAll(): void {
    for (const delivery of [...this.unsettled]) this.ack(delivery);
  }
}

/** The number that {@link Site.publish} wrote into it. */
export function numberOf(delivery: Delivery): number {
  return Number(Buffer.from(delivery.body).toString());
}

/** As a client that hands back all of these at once. */
export function requeue(deliveries: readonly Delivery[]): void {
  for (const delivery of deliveries) delivery.settle("requeue");
}

export class Site {
  readonly #folder: string;
  #port = 0;
  #process: ChildProcess | undefined;
  #connections: NatsConnection[] = [];
  readonly #cursors: Set<QueueCursor> = new Set<QueueCursor>();
  #busField: JetStreamBus | undefined;
  #topologyField: Topology | undefined;
  lease: boolean = true;
  restarts = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(): Promise<Site> {
    const site = new Site(await mkdtemp(join(tmpdir(), "amqp-queue-")));
    try {
      await site.#begin();
      return site;
    } catch (error) {
      await site.#kill();
      throw error;
    }
  }

  async #begin(): Promise<void> {
    await this.#start();
    const url = `nats://127.0.0.1:${this.#port}`;
    const options = { servers: url, reconnectTimeWait: 50, maxReconnectAttempts: -1 };
    const [publishing, delivering] = [await connect(options), await connect(options)];
    this.#connections = [publishing, delivering];
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
    await Promise.all(this.#connections.map((connection) => connection.close()));
    await this.#kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** kill -9 of the bus, and the same one again. Resolves when the gateway's side is back. */
  async crash(pause = 0): Promise<void> {
    const { restarts } = this;
    await this.#kill();
    await sleep(pause);
    await this.#start();
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
    const connection = await connect({ servers: `nats://127.0.0.1:${this.#port}` });
    this.#connections.push(connection);
    return Topology.open(await openBucket(connection), { root: "amqp", lost: () => {} });
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

  async #kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async #start(): Promise<void> {
    const ports = await mkdtemp(join(this.#folder, "ports-"));
    const port = this.#port === 0 ? "-1" : String(this.#port);
    const args = ["-a", "127.0.0.1", "-p", port, "-js", "-sd", join(this.#folder, "store"), "--ports_file_dir", ports];
    const child = spawn(process.env.NATS_SERVER_BIN ?? "nats-server", args, { stdio: "ignore" });
    this.#process = child;
    child.once("error", (error) => {
      throw error;
    });
    await until(async () => {
      const [file] = (await readdir(ports)).filter((name) => name.endsWith(".ports"));
      const text = file === undefined ? "" : await readFile(join(ports, file), "utf8");
      if (!text.endsWith("}")) return false;
      this.#port = Number(new URL((JSON.parse(text) as { nats: [string] }).nats[0]).port);
      return true;
    });
    // The ports file comes before JetStream is ready.
    const connection = await connect({ servers: `nats://127.0.0.1:${this.#port}`, maxReconnectAttempts: 20 });
    await until(() =>
      connection.request("$JS.API.INFO", "", { timeout: 500 }).then(
        () => true,
        () => false,
      ),
    );
    await connection.close();
  }
}

/** Consecutive numbers from 0. */
export function numbers(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, place) => first + place);
}
