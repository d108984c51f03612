// The load generator: compiled once a run, started once a sample, its JSON line read.
// Used by rows and by own rows. Separate because it is the only thing here that knows amqpload's options and output.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Target } from "./targets.ts";

const SOURCE = fileURLToPath(new URL("amqpload.c", import.meta.url));
/** Seconds. */
const LIMIT = 120;

/** What one run of amqpload says. */
export interface Sample {
  readonly perSecond: number;
  /** CPU of the broker's processes per message, microseconds; 0 where none were named. */
  readonly micros: number;
  /** The same of each process, in the order of {@link Target.pids}. */
  readonly microsOf: readonly number[];
  /** Until a publish was confirmed, microseconds; undefined where none was. */
  readonly confirmP50: number | undefined;
  /** Resident memory of the first process that came with the run, KiB. */
  readonly grownKib: number;
}

/** A compiled amqpload. */
export class Amqpload {
  readonly #folder: string;
  readonly #binary: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#binary = join(folder, "amqpload");
  }

  /** Compiles it. @throws where there is no C compiler, saying so */
  static build(): Amqpload {
    const load = new Amqpload(mkdtempSync(join(tmpdir(), "amqpload-")));
    for (const compiler of ["cc", "gcc", "clang"]) {
      const { error, status, stderr } = spawnSync(compiler, ["-O2", "-o", load.#binary, SOURCE], { encoding: "utf8" });
      if (error !== undefined) continue;
      if (status === 0) return load;
      load.remove();
      throw new Error(`${compiler} does not compile amqpload.c:\n${stderr}`);
    }
    load.remove();
    throw new Error("the load generator needs a C compiler (cc, gcc or clang): install one, e.g. apt-get install gcc");
  }

  /** One sample; each call of a list before the last prepares it. `limit`: seconds after which each has failed. */
  async run(calls: string | readonly string[], target: Target, limit: number = LIMIT): Promise<Sample> {
    let line = "";
    for (const call of [calls].flat()) {
      const args = [...call.split(" "), "-p", `${target.port}`, "-i", target.pids().slice(0, 8).join(",")];
      line = await this.#start([...args, "-L", `${limit}`]);
    }
    const said = JSON.parse(line) as Record<string, number> & { confirm_us?: { p50: number } };
    const processes = Object.keys(said).filter((key) => /^pid\d$/.test(key));
    const parts = processes.map((key) => said[key] as unknown as { cpu: number; rss0_kb: number; rss_kb: number });
    return {
      perSecond: said.per_s ?? 0,
      micros: said.us_per_op ?? 0,
      microsOf: parts.map(({ cpu }) => (cpu * 1e6) / (said.n ?? 1)),
      confirmP50: said.confirm_us?.p50,
      grownKib: (parts[0]?.rss_kb ?? 0) - (parts[0]?.rss0_kb ?? 0),
    };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #start(args: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = spawn(this.#binary, args, { stdio: ["ignore", "pipe", "pipe"] });
      let out = "";
      let err = "";
      child.stdout.on("data", (chunk: Buffer) => {
        out += chunk.toString();
      });
      child.stderr.on("data", (chunk: Buffer) => {
        err += chunk.toString();
      });
      child.once("error", reject);
      child.once("close", (code) => {
        if (code === 0 && err === "") resolve(out.trim());
        else reject(new Error(`amqpload ${args.join(" ")}: ${err.trim() || `exit ${code}`}`));
      });
    });
  }
}
