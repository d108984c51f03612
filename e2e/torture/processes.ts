// The processes of a torture run: some gateways on one bus, and what may be done to them. Used by the run and by
// the soak. Separate from the faults' schedule, which only decides when.
import { setTimeout as sleep } from "node:timers/promises";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import type { BusProcesses } from "./bus.ts";
import { type Fault, now } from "./history.ts";

const LAPSED = "the presence lease lapsed";
/** Until then it may lapse again, and say no more of it. */
const REGAINED = "the presence lease is held again";
/** Of the logs, where a gateway does not come to serve. */
const LAST_LINES = 60;

/** Gateways by number, on one bus. */
export class Processes {
  readonly #bus: BusProcesses;
  readonly #gateways: (Gateway | undefined)[] = [];
  readonly #faults: Fault[];
  readonly #env: Readonly<Record<string, string>>;
  readonly #logs: { readonly gateway: number; readonly at: number; readonly text: string }[] = [];
  readonly #read: WeakMap<Gateway, number> = new WeakMap<Gateway, number>();

  private constructor(bus: BusProcesses, faults: Fault[], env: Readonly<Record<string, string>>) {
    this.#bus = bus;
    this.#faults = faults;
    this.#env = { ...bus.env, ...env };
  }

  /** `env`: added to the gateways' environment. The bus is stopped with them. */
  static async start(
    count: number,
    bus: BusProcesses,
    faults: Fault[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Processes> {
    const processes = new Processes(bus, faults, env);
    for (let gateway = 0; gateway < count; gateway++) await processes.#start(gateway);
    return processes;
  }

  get live(): number {
    return this.#gateways.filter((each) => each !== undefined).length;
  }

  get pids(): readonly number[] {
    return this.#gateways.flatMap((each) => (each === undefined ? [] : [each.pid]));
  }

  /** Undefined while it does not run. */
  portOf(gateway: number): number | undefined {
    return this.#gateways[gateway]?.port;
  }

  /** SIGKILL, and started again after a while. */
  async kill(number: number, away: number): Promise<void> {
    const fault = this.#begin("gateway-kill", number);
    const gateway = this.#take(number);
    await gateway?.kill("SIGKILL");
    await gateway?.stop();
    await sleep(away);
    await this.#start(number);
    fault.until = now();
  }

  /** SIGTERM, and started again when it has ended. */
  async restart(number: number): Promise<void> {
    const fault = this.#begin("gateway-restart", number);
    const gateway = this.#take(number);
    const begun = now();
    await gateway?.stop();
    if (now() - begun > 14_000) throw new Error(`gateway ${number} does not stop`);
    await this.#start(number);
    fault.until = now();
  }

  /** SIGSTOP, and SIGCONT after a while. */
  async freeze(number: number, away: number): Promise<void> {
    const gateway = this.#gateways[number];
    if (gateway === undefined) return;
    const fault = this.#begin("gateway-stop", number);
    process.kill(gateway.pid, "SIGSTOP");
    await sleep(away);
    process.kill(gateway.pid, "SIGCONT");
    fault.until = now();
  }

  /** SIGKILL for the bus, or for one of its servers, and started again after a while. */
  async strikeBus(away: number, draw: number): Promise<void> {
    const fault = this.#begin(this.#bus.faultKind, -1);
    await this.#bus.strike(away, draw);
    fault.until = now();
  }

  /** What every gateway has logged so far, in the order in which it was logged. */
  logs(): readonly { readonly gateway: number; readonly at: number; readonly text: string }[] {
    this.#gateways.forEach((gateway, number) => {
      if (gateway !== undefined) this.#readLog(number, gateway);
    });
    return [...this.#logs].sort((a, b) => a.at - b.at);
  }

  async stop(): Promise<void> {
    this.logs();
    await Promise.all(this.#gateways.map((gateway) => gateway?.stop()));
    await this.#bus.stop();
  }

  #begin(kind: Fault["kind"], target: number): Fault {
    const fault: Fault = { kind, target, from: now(), until: Number.POSITIVE_INFINITY };
    this.#faults.push(fault);
    return fault;
  }

  #take(number: number): Gateway | undefined {
    const gateway = this.#gateways[number];
    this.#gateways[number] = undefined;
    if (gateway !== undefined)
      void gateway.exited.then(() => {
        this.#readLog(number, gateway);
        this.#endLapse(number, now());
      });
    return gateway;
  }

  #endLapse(number: number, at: number): void {
    for (const fault of this.#faults)
      if (fault.kind === "lease-lapsed" && fault.target === number && fault.until > at) fault.until = at;
  }

  async #start(number: number): Promise<void> {
    const env = { LOG_LEVEL: "info", ...this.#env, NATS_URL: this.#bus.urls };
    for (let tries = 1; ; tries++) {
      try {
        this.#gateways[number] = await startGateway({ env, timeout: 40_000 });
        return;
      } catch (error) {
        // The bus may be away just then: a boot that fails closed is right (HIP §5), and an orchestrator tries again.
        if (tries === 5) {
          // Why it did not may stand in another's log.
          for (const { gateway, text } of this.logs().slice(-LAST_LINES)) console.error(`gateway ${gateway}: ${text}`);
          throw error;
        }
        await sleep(500);
      }
    }
  }

  #readLog(number: number, gateway: Gateway): void {
    const from = this.#read.get(gateway) ?? 0;
    this.#read.set(gateway, gateway.lines.length);
    for (const line of gateway.lines.slice(from)) {
      const at = typeof line.time === "number" ? line.time : Number.NaN;
      this.#logs.push({ gateway: number, at, text: JSON.stringify(line) });
      if (line.msg.startsWith(LAPSED)) {
        this.#faults.push({ kind: "lease-lapsed", target: number, from: at, until: Number.POSITIVE_INFINITY });
      } else if (line.msg.startsWith(REGAINED)) this.#endLapse(number, at);
    }
  }
}
