/**
 * The program from its sources as a process of its own, and what tests look for in it. Used by the tests of boot and of
 * workers. Separate from them because both start the same thing and must leave nothing behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { identityOf } from "../src/embedded/identity.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** A line of the log. */
export interface Line {
  readonly level: string;
  readonly msg: string;
  readonly host?: string;
  readonly port?: number;
  readonly pid?: number;
  readonly worker?: string;
  readonly workers?: number;
  readonly bus?: readonly string[];
  readonly embedded?: boolean;
}

/** A running gateway. */
export class Program {
  readonly lines: Line[] = [];
  readonly ended: Promise<number | null>;
  text = "";
  readonly #child: ChildProcess;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    const flags = ["--conditions=@amqp/source", "--experimental-strip-types", "--no-warnings"];
    this.#child = spawn(process.execPath, [...flags, main, ...args], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.ended = new Promise((resolve) => this.#child.once("close", resolve));
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        this.text += `${line}\n`;
        if (line.startsWith("{")) this.lines.push(JSON.parse(line) as Line);
      });
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The first line after the first `after` ones that contains this; waits for it. */
  async line(containing: string, after = 0): Promise<Line> {
    let ended = false;
    void this.ended.then(() => {
      ended = true;
    });
    for (;;) {
      const found = this.lines.slice(after).find(({ msg }) => msg.includes(containing));
      if (found !== undefined) return found;
      if (ended) throw new Error(`it ended without «${containing}»:\n${this.text}`);
      await sleep(10);
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Ends it however it stands, and what it started. */
  kill(): void {
    this.#child.kill("SIGKILL");
    for (const { pid } of this.lines) {
      if (pid !== undefined && identityOf(pid) !== undefined) process.kill(pid, "SIGKILL");
    }
  }
}

/** What a readiness check asks: does the port take a connection? */
export async function accepts(port: number, host = "127.0.0.1"): Promise<boolean> {
  const socket = connectTcp(port, host);
  const answer = await Promise.race([
    once(socket, "connect").then(() => true),
    once(socket, "error").then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return answer;
}
