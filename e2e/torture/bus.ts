// What a torture run is on: one nats-server, or three with three copies of everything, and how a part of it dies and comes
// back. Separate from processes.ts, which knows that something can be killed and not what.
import { setTimeout as sleep } from "node:timers/promises";
import { NatsCluster } from "../cluster/servers.ts";
import { type NatsServer, startNats } from "../harness/nats-server.ts";

const STREAMS = ["AMQP", "KV_amqp"] as const;

/** A bus that can be struck. */
export interface BusProcesses {
  /** `NATS_URL` of a gateway on it. */
  readonly urls: string;
  /** One of its servers. */
  readonly url: string;
  /** What a gateway on it is told besides. */
  readonly env: Readonly<Record<string, string>>;
  readonly faultKind: "bus-kill" | "server-kill";
  /** SIGKILL for one server, the whole bus where there is but one; resolves when all is as it was. */
  strike(away: number, draw: number): Promise<void>;
  stop(): Promise<void>;
}

export function oneServer(nats: NatsServer): BusProcesses {
  return {
    urls: nats.url,
    url: nats.url,
    env: {},
    faultKind: "bus-kill",
    strike: async (away) => {
      await nats.kill();
      await sleep(away);
      await nats.restart();
    },
    stop: () => nats.stop(),
  };
}

/** Killed one at a time: the next one after all copies are up to date, as docs/cluster.md asks of whoever rolls servers. */
export async function threeServers(): Promise<BusProcesses> {
  const cluster = await NatsCluster.start();
  const [first] = cluster.servers;
  return {
    urls: cluster.urls,
    url: first?.url ?? "",
    env: { AMQP_STREAM_REPLICAS: String(cluster.servers.length) },
    faultKind: "server-kill",
    strike: async (away, draw) => {
      const victim = cluster.servers[Math.floor(draw * cluster.servers.length)];
      await victim?.kill();
      // An election takes five to nine seconds.
      await sleep(away * 2);
      await victim?.start();
      await cluster.whole(STREAMS);
    },
    stop: () => cluster.stop(),
  };
}

export async function startBus(servers: 1 | 3): Promise<BusProcesses> {
  return servers === 3 ? threeServers() : oneServer(await startNats());
}
