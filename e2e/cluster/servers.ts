// Three real nats-servers in one cluster on loopback: routes, JetStream, a store for each; any of them can be killed and
// started again on its ports and store. The tests of this folder kill leaders, so it also finds them and waits until
// the cluster is whole. Separate from harness/nats-server.ts: a cluster is fixed ports, routes and elections.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { endProcess, exited, own, removeFolder, temporaryFolder } from "../harness/owned.ts";

const SERVERS = 3;
/** What an election or a server's start may take, milliseconds. */
const PATIENCE = 40_000;

/** A server of the cluster, running or not. */
export interface ClusterServer {
  /** As JetStream names it where it says who leads. */
  readonly name: string;
  readonly url: string;
  readonly port: number;
  readonly running: boolean;
  /** The names of the clients that are connected to it. */
  clients(): Promise<readonly string[]>;
  /** The name of the server that hands out changes of streams and consumers. */
  metaLeader(): Promise<string | undefined>;
  /** What its own copy of a stream has, whoever leads. */
  copy(stream: string): Promise<Copy>;
  /** SIGKILL by default; resolves when it is dead. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it on its old ports and store. */
  start(): Promise<void>;
  /** Stands still, its connections open, until {@link resume}. */
  freeze(): void;
  resume(): void;
}

/** One server's copy of a stream. */
export interface Copy {
  readonly messages: number;
  readonly lastSequence: number;
}

/** A Raft group as its leader describes it. */
export interface Group {
  /** Undefined while there is none. */
  readonly leader: string | undefined;
  /** Whether every other member has all that the leader has. */
  readonly whole: boolean;
  readonly replicas: number;
}

interface Info {
  readonly config?: { readonly num_replicas?: number };
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly { readonly current: boolean; readonly offline?: boolean }[];
  };
}

export class NatsCluster {
  readonly servers: readonly ClusterServer[];
  readonly #folder: string;
  #connection: NatsConnection | undefined;

  private constructor(servers: readonly ClusterServer[], folder: string) {
    this.servers = servers;
    this.#folder = folder;
  }

  /** Starts all of them and waits until JetStream answers. */
  static async start(): Promise<NatsCluster> {
    const folder = temporaryFolder("nats-cluster");
    const ports = await freePorts(SERVERS * 3);
    const routes = ports.slice(0, SERVERS).map((port) => `nats://127.0.0.1:${port}`);
    const servers = routes.map(
      (_, at) =>
        new Server(folder, `n${at + 1}`, routes, {
          route: ports[at] ?? 0,
          client: ports[SERVERS + at] ?? 0,
          monitor: ports[SERVERS * 2 + at] ?? 0,
        }),
    );
    const cluster = new NatsCluster(servers, folder);
    await Promise.all(servers.map((server) => server.start()));
    cluster.#connection = await connect({
      servers: servers.map(({ url }) => url),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectJitter: 10,
    });
    // Answers once the servers have agreed on who leads them.
    await cluster.until("JetStream answers", async () => (await cluster.ask<object>("INFO")) !== undefined);
    return cluster;
  }

  /** `NATS_URL` of the whole cluster. */
  get urls(): string {
    return this.servers.map(({ url }) => url).join(",");
  }

  server(name: string): ClusterServer {
    const found = this.servers.find((server) => server.name === name);
    if (found === undefined) throw new Error(`no server of this cluster is called ${name}`);
    return found;
  }

  stream(name: string): Promise<Group> {
    return this.#group(`STREAM.INFO.${name}`);
  }

  consumer(stream: string, name: string): Promise<Group> {
    return this.#group(`CONSUMER.INFO.${stream}.${name}`);
  }

  /** Has the group led by another server, in order: no crash. */
  async stepDown(stream: string, consumer?: string): Promise<void> {
    const verb = consumer === undefined ? `STREAM.LEADER.STEPDOWN.${stream}` : "CONSUMER.LEADER.STEPDOWN";
    await this.ask(consumer === undefined ? verb : `${verb}.${stream}.${consumer}`);
  }

  /**
   * Waits until each stream and all of its consumers have a leader and every member is up to date; milliseconds that
   * took. Killing another server before that is killing two.
   */
  async whole(streams: readonly string[]): Promise<number> {
    const began = performance.now();
    const groups: [stream: string, consumer?: string][] = [];
    for (const stream of streams) {
      await this.until(`${stream} is whole`, async () => (await this.stream(stream)).whole);
      const names = await this.ask<{ readonly consumers: readonly string[] | null }>(`CONSUMER.NAMES.${stream}`);
      groups.push(...(names?.consumers ?? []).map((name) => [stream, name] as [string, string]));
    }
    for (const [stream, consumer] of groups) {
      await this.until(`${stream} ${consumer ?? ""} is whole`, async () => {
        if (consumer === undefined) return true;
        const { leader, whole, replicas } = await this.consumer(stream, consumer);
        // Replicas 0: it is gone meanwhile; 1: somebody's watch.
        return replicas < 2 || (leader !== undefined && whole);
      });
    }
    return performance.now() - began;
  }

  /** One request to JetStream's API; undefined where nobody answers within half a second. */
  async ask<T>(verb: string, body = ""): Promise<T | undefined> {
    try {
      const answer = await this.connection.request(`$JS.API.${verb}`, body, { timeout: 500 });
      const said = answer.json<T & { error?: object }>();
      return said.error === undefined ? said : undefined;
    } catch {
      return undefined;
    }
  }

  /** A connection of this class's own: to whichever server runs. */
  get connection(): NatsConnection {
    if (this.#connection === undefined) throw new Error("the cluster is not started");
    return this.#connection;
  }

  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    for (const end = performance.now() + PATIENCE; !(await holds()); await sleep(50)) {
      if (performance.now() > end) throw new Error(`not within ${PATIENCE} ms: ${what}`);
    }
  }

  async stop(): Promise<void> {
    await this.#connection?.close();
    await Promise.all(this.servers.map((server) => server.kill()));
    removeFolder(this.#folder);
  }

  async #group(verb: string): Promise<Group> {
    const info = await this.ask<Info>(verb);
    const members = info?.cluster?.replicas ?? [];
    const whole =
      members.length === SERVERS - 1 && members.every(({ current, offline }) => current && offline !== true);
    return { leader: info?.cluster?.leader, whole, replicas: info === undefined ? 0 : members.length + 1 };
  }
}

interface Ports {
  readonly route: number;
  readonly client: number;
  readonly monitor: number;
}

class Server implements ClusterServer {
  readonly name: string;
  readonly port: number;
  readonly #folder: string;
  readonly #configuration: string;
  readonly #monitor: string;
  #child: ChildProcess | undefined;

  constructor(folder: string, name: string, routes: readonly string[], ports: Ports) {
    this.name = name;
    this.port = ports.client;
    this.#monitor = `http://127.0.0.1:${ports.monitor}`;
    this.#folder = folder;
    this.#configuration = join(folder, `${name}.conf`);
    writeFileSync(
      this.#configuration,
      `server_name: ${name}
host: 127.0.0.1
port: ${ports.client}
http: 127.0.0.1:${ports.monitor}
jetstream { store_dir: ${JSON.stringify(join(folder, name))} }
cluster { name: amqp, host: 127.0.0.1, port: ${ports.route}, routes: [${routes.join(", ")}] }
`,
    );
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async clients(): Promise<readonly string[]> {
    if (!this.running) return [];
    const answer = await fetch(`${this.#monitor}/connz`);
    const { connections } = (await answer.json()) as { connections: { name?: string }[] };
    return connections.map(({ name = "" }) => name);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.#child === undefined) return;
    if (signal === "SIGKILL") this.#child.kill(signal);
    else await endProcess(this.#child, signal);
    await exited(this.#child);
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  async metaLeader(): Promise<string | undefined> {
    const answer = (await (await fetch(`${this.#monitor}/jsz`)).json()) as { meta_cluster?: { leader?: string } };
    return answer.meta_cluster?.leader;
  }

  async copy(stream: string): Promise<Copy> {
    const answer = await fetch(`${this.#monitor}/jsz?streams=true&acc=$G`);
    const { account_details } = (await answer.json()) as {
      account_details?: { stream_detail?: { name: string; state: { messages: number; last_seq: number } }[] }[];
    };
    const found = (account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail);
    const { messages = 0, last_seq = 0 } = found.find(({ name }) => name === stream)?.state ?? {};
    return { messages, lastSequence: last_seq };
  }

  async start(): Promise<void> {
    await this.kill();
    const log = join(this.#folder, `${this.name}.log`);
    const child = spawn(binary(), ["-c", this.#configuration, "-l", log], { stdio: "ignore" });
    own(child);
    this.#child = child;
    for (const end = performance.now() + 10_000; ; await sleep(20)) {
      if (!this.running || performance.now() > end) throw new Error(`${this.name} does not start; see ${log}`);
      const connection = await connect({ servers: this.url, reconnect: false, timeout: 500 }).catch(() => undefined);
      if (connection === undefined) continue;
      await connection.close();
      return;
    }
  }
}

function binary(): string {
  const path = process.env.NATS_SERVER_BIN;
  if (path === undefined || !existsSync(path)) {
    throw new Error("NATS_SERVER_BIN does not name a nats-server; `npm test` sets it");
  }
  return path;
}

/** Ports that nobody listens on; all held until all are found, so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const holders = Array.from({ length: count }, () => createServer());
  await Promise.all(holders.map((holder) => new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve))));
  const ports = holders.map((holder) => (holder.address() as AddressInfo).port);
  await Promise.all(holders.map((holder) => new Promise<void>((resolve) => holder.close(() => resolve()))));
  return ports;
}
