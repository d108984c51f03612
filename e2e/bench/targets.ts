// What is measured: our gateway with its embedded nats-server, in its default configuration, and RabbitMQ 4.
// Used by main and own rows. Separate because starting and stopping brokers is none of the rows' business.
// The reference is one that runs already (AMQP_BENCH_REFERENCE=<port>:<pid>), or is started by rabbitmq.sh beside this file.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Gateway, type GatewayOptions, startGateway } from "../harness/gateway.ts";
import { familyOf } from "./processes.ts";

const SCRIPT = fileURLToPath(new URL("rabbitmq.sh", import.meta.url));
const FOLDER = fileURLToPath(new URL(".rabbitmq4", import.meta.url));
const REFERENCE_PORT = 5743;

/** A broker under load. */
export interface Target {
  readonly name: "gateway" | "rabbitmq";
  readonly port: number;
  /** Everything whose CPU counts; the broker itself first. */
  pids(): readonly number[];
  stop(): Promise<void>;
}

/** The gateway as `npm start` runs it, but for its ports, its data folder and a quieter log. */
export async function startOurs(options: GatewayOptions = {}): Promise<Target & { readonly gateway: Gateway }> {
  const gateway = await startGateway({ ...options, env: { LOG_LEVEL: "info", ...options.env } });
  return {
    name: "gateway",
    port: gateway.port,
    pids: () => familyOf(gateway.pid),
    stop: () => gateway.stop(),
    gateway,
  };
}

/** RabbitMQ 4, or what is missing for it. */
export function startReference(): Target | string {
  const running = /^(\d+):(\d+)$/.exec(process.env.AMQP_BENCH_REFERENCE ?? "");
  if (running !== null) return reference(Number(running[1]), Number(running[2]), async () => {});
  if (process.getuid?.() !== 0) return "rabbitmq.sh needs root (it builds a chroot); or name a running one";
  if (!existsSync(FOLDER) && spawnSync("apt-get", ["--version"]).error !== undefined) {
    return "rabbitmq.sh needs Debian's packages; or name a running one";
  }
  const { status, stdout } = spawnSync("bash", [SCRIPT, "start", `${REFERENCE_PORT}`, FOLDER], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  const pid = Number(stdout.trim().split("\n").at(-1));
  if (status !== 0 || !(pid > 0)) return "rabbitmq.sh could not start it (see above)";
  return reference(REFERENCE_PORT, pid, async () => {
    spawnSync("bash", [SCRIPT, "stop", FOLDER], { stdio: "inherit" });
  });
}

function reference(port: number, pid: number, stop: () => Promise<void>): Target {
  return { name: "rabbitmq", port, pids: () => [pid], stop };
}
