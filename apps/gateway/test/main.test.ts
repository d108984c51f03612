/**
 * The program itself: run from its sources as a process of its own, for exit codes, signals and what it leaves behind
 * are what is tested.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, it } from "vitest";
import { identityOf, stillRuns } from "../src/embedded/identity.ts";
import { accepts } from "./program.ts";
import { Site } from "./site.ts";

const site = new Site("main");
const anyPorts = ["--port", "0", "--nats-port", "0"] as const;

describe("a gateway that serves", () => {
  it("says so in one line with its address and its bus, and accepts", async () => {
    const program = site.run(anyPorts);
    const line = await program.line("serving AMQP 0-9-1 on 127.0.0.1:");
    const [bus = ""] = line.bus ?? [];
    expect(line).toMatchObject({ level: "info", host: "127.0.0.1", embedded: true });
    expect(line.msg).toBe(`serving AMQP 0-9-1 on 127.0.0.1:${line.port}, bus ${bus} (embedded)`);
    expect(await accepts(line.port ?? 0)).toBe(true);
  });

  it("uses the bus it is given, and shows no credential of it at any level", async () => {
    const url = await site.serve(site.jetstream, 'authorization { user: "ada", password: "hunter2" }');
    const program = site.run(["--port", "0"], { NATS_URL: url.replace("//", "//ada:hunter2@"), LOG_LEVEL: "trace" });
    expect(await program.line("serving")).toMatchObject({ bus: [url], embedded: false });
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(program.text).not.toContain("hunter2");
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "stops on %s, however often it comes, and leaves nothing",
    async (signal) => {
      const program = site.run(anyPorts);
      const { port } = await program.line("serving");
      const { pid } = await program.line("embedded nats-server runs");
      const server = identityOf(pid ?? 0);
      for (let time = 0; time < 3; time += 1) {
        program.signal(signal);
        await sleep(5);
      }
      expect(await program.ended).toBe(0);
      expect(server && stillRuns(server)).toBe(false);
      expect(await accepts(port ?? 0)).toBe(false);
      expect(program.lines.filter(({ msg }) => msg.includes("stopping"))).toHaveLength(1);
    },
  );

  it("stops while it boots, and leaves nothing", async () => {
    const program = site.run(anyPorts);
    const { pid } = await program.line("embedded nats-server runs");
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(identityOf(pid ?? 0)).toBeUndefined();
  });

  it("has its embedded server again when that was killed", async () => {
    const program = site.run(anyPorts);
    const { port } = await program.line("serving");
    const { pid } = await program.line("embedded nats-server runs on");
    process.kill(pid ?? 0, "SIGKILL");
    await program.line("embedded nats-server runs again");
    await program.line("the bus is back");
    expect(await accepts(port ?? 0)).toBe(true);
  });
});

describe("a gateway whose topology is gone", () => {
  it("serves nobody any more, and ends with exit code 1 and one line", async () => {
    const url = await site.serve();
    const program = site.run(["--port", "0", "--nats-url", url]);
    const { port = 0 } = await program.line("serving");
    const connection = await connect({ servers: url });
    await (await jetstreamManager(connection)).streams.delete("KV_amqp");
    await connection.close();
    expect(await program.ended).toBe(1);
    const fatal = program.lines.filter(({ level }) => level === "fatal");
    expect(fatal.map(({ msg }) => msg)).toEqual([
      "the gateway can serve no more: the bucket's stream was deleted: start it again",
    ]);
    expect(await accepts(port)).toBe(false);
  });
});

describe("a bus that stays away", () => {
  it("closes the port, which a readiness check sees, and opens it when it is back", async () => {
    const url = await site.serve();
    const program = site.run(["--port", "0", "--nats-url", url, "--bus-timeout", "1"]);
    const { port = 0 } = await program.line("serving");
    expect(await accepts(port)).toBe(true);
    site.servers[0]?.signal("SIGKILL");
    await program.line("the port is closed");
    expect(await accepts(port)).toBe(false);
    await site.serveAgain(url);
    await program.line("the port is open again");
    expect(await accepts(port)).toBe(true);
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
  });

  it("does not keep a gateway from stopping", async () => {
    const url = await site.serve();
    const program = site.run(["--port", "0", "--nats-url", url, "--bus-timeout", "1"]);
    await program.line("serving");
    site.servers[0]?.signal("SIGKILL");
    await program.line("the port is closed");
    program.signal("SIGTERM");
    expect(await program.ended).toBe(0);
  });
});

describe("the command line", () => {
  it("answers --version and --help", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    const [asked, helped] = [site.run(["--version"]), site.run(["--help"])];
    expect(await asked.ended).toBe(0);
    expect(asked.text.trim()).toBe(version);
    expect(await helped.ended).toBe(0);
    expect(helped.text).toContain("--nats-url");
  });

  it.each([
    [["--prot", "1"], "--prot"],
    [["--port", "many"], "--port"],
    [["--host", "0.0.0.0"], "AMQP_ALLOW_ANONYMOUS"],
  ])("refuses %j in one line", async (args, named) => {
    const program = site.run(args);
    expect(await program.ended).toBe(1);
    expect(program.text.trim().split("\n")).toEqual([expect.stringContaining(named)]);
  });
});
