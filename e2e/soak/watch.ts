// What a fleet keeps while clients come and go: memory of its processes, and the bus's connections, subscriptions,
// consumers, keys and messages. Used by soak.ts. Separate because it only looks.
import { execFile } from "node:child_process";
import { createServer } from "node:net";
import { promisify } from "node:util";
import { openBus } from "../crosswire/bus.ts";

const run = promisify(execFile);
const PREFIX = "$KV.amqp.";

/** Resident memory of processes at one moment, octets. */
export interface Memory {
  /** Milliseconds since the first one. */
  readonly at: number;
  readonly gateways: readonly number[];
  readonly bus: number;
}

/** Everything countable that could leak. */
export interface Counts {
  readonly messages: number;
  readonly consumers: readonly string[];
  readonly keys: readonly string[];
  readonly leases: number;
  readonly connections: number;
  readonly subscriptions: number;
}

/** Resident set sizes, in the order of the processes. */
export async function residentMemory(pids: readonly number[]): Promise<readonly number[]> {
  const { stdout } = await run("ps", ["-o", "pid=,rss=", "-p", pids.join(",")]);
  const sizes = new Map(
    stdout
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]),
  );
  return pids.map((pid) => (sizes.get(pid) ?? 0) * 1_024);
}

/** What the bus keeps; `monitor` is the port of its monitoring. */
export async function count(natsUrl: string, monitor: number): Promise<Counts> {
  // Before this process's own connection.
  const { connections, subscriptions } = (await (await fetch(`http://127.0.0.1:${monitor}/varz`)).json()) as {
    readonly connections: number;
    readonly subscriptions: number;
  };
  const bus = await openBus(natsUrl);
  try {
    const there: string[] = [];
    // Not by a watch: its consumer would stay for a while and be counted the next time.
    const { state } = await bus.manager.streams.info("KV_amqp", { subjects_filter: `${PREFIX}>` });
    for (const subject of Object.keys(state.subjects ?? {})) {
      const found = await bus.manager.streams.getMessage("KV_amqp", { last_by_subj: subject });
      const isMarker = found?.header.has("Nats-Marker-Reason") || found?.header.has("KV-Operation");
      if (found !== null && !isMarker) there.push(subject.slice(PREFIX.length));
    }
    return {
      messages: await bus.messages(),
      consumers: await bus.consumers(),
      keys: there.filter((key) => /^[xqb]\./.test(key)),
      leases: there.filter((key) => key.startsWith("r.")).length,
      connections,
      subscriptions,
    };
  } finally {
    await bus.close();
  }
}

/** What the bus has of these queues: their cursors' numbers, and the log's end. */
export async function look(natsUrl: string, queues: readonly string[]): Promise<string> {
  const bus = await openBus(natsUrl);
  try {
    const said = await Promise.all(
      queues.map(async (queue) => {
        const { num_pending, num_ack_pending, num_waiting, delivered, ack_floor } = await bus.manager.consumers.info(
          "AMQP",
          queue,
        );
        return `${queue} ${JSON.stringify({ num_pending, num_ack_pending, num_waiting, delivered, ack_floor })}`;
      }),
    );
    return `${said.join(", ")}, log ${JSON.stringify((await bus.manager.streams.info("AMQP")).state)}`;
  } catch (error) {
    return String(error);
  } finally {
    await bus.close();
  }
}

/** Octets a minute by which a process grows, by least squares. */
export function slope(points: readonly { readonly at: number; readonly octets: number }[]): number {
  const n = points.length;
  if (n < 2) return 0;
  const meanAt = points.reduce((sum, { at }) => sum + at, 0) / n;
  const mean = points.reduce((sum, { octets }) => sum + octets, 0) / n;
  let over = 0;
  let under = 0;
  for (const { at, octets } of points) {
    over += (at - meanAt) * (octets - mean);
    under += (at - meanAt) ** 2;
  }
  return under === 0 ? 0 : (over / under) * 60_000;
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
