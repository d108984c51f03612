import { afterEach, describe, expect, it } from "vitest";
import { BootError } from "../../src/nats/errors.ts";
import { NatsServer, open } from "./harness.ts";

const MIB = 1024 * 1024;

describe("opening the bus", () => {
  const servers: NatsServer[] = [];

  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
  });

  async function start(extra = "", domain: string | null = ""): Promise<NatsServer> {
    const server = await NatsServer.start(extra, domain);
    servers.push(server);
    return server;
  }
  it("refuses a stream that is something else, and sets other differences right", { timeout: 60_000 }, async () => {
    const server = await start();
    const nc = await server.connect();
    const make = async (config: object): Promise<void> => {
      await nc.request("$JS.API.STREAM.DELETE.AMQP");
      await nc.request("$JS.API.STREAM.CREATE.AMQP", JSON.stringify({ name: "AMQP", storage: "memory", ...config }));
    };
    const right = { subjects: ["amqp.>"], retention: "interest", discard: "new" };
    for (const [setting, wrong] of [
      ["subjects", ["amqp.*"]],
      ["retention", "limits"],
      ["discard", "old"],
    ] as const) {
      await make({ ...right, [setting]: wrong });
      const refusal = await open(server).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(BootError);
      const message = String((refusal as Error).message);
      expect(message).toContain(`${setting} is ${wrong}`);
      expect(message).toContain("AMQP_STREAM");
      expect(message).not.toContain("\n");
    }
    // Other differences are set right, or named.
    await make({ ...right, max_age: 3_600_000_000_000, max_msgs: 5, max_consumers: 10 });
    const adapted = await open(server, { maxBytes: 12 * MIB });
    const { config } = (await nc.request("$JS.API.STREAM.INFO.AMQP")).json<{ config: Record<string, number> }>();
    expect(config).toMatchObject({ max_age: 0, max_msgs: -1, max_bytes: 12 * MIB });
    const warned = adapted.log.lines.filter((line) => line.startsWith("warn"));
    expect(config.max_consumers === 100_000 || warned.some((line) => line.includes("max_consumers"))).toBe(true);
    expect(warned.some((line) => line.includes("memory"))).toBe(true);
    await adapted.close();
    await nc.request("$JS.API.STREAM.DELETE.AMQP");
    await nc.request("$JS.API.STREAM.CREATE.T", JSON.stringify({ name: "T", subjects: ["amqp.t.>"] }));
    await expect(open(server)).rejects.toThrow(/another stream already takes part of amqp\.>/);
    await nc.close();
  });

  it("names what is missing: JetStream, or a permission", { timeout: 60_000 }, async () => {
    const off = await start("", null);
    await expect(open(off)).rejects.toThrow(/JetStream is off.*-js/);
    const closed = await start(
      'authorization { users: [ { user: a, password: b, permissions: { publish: ["x"], subscribe: ["_INBOX.>"] } } ] }\nno_auth_user: a',
    );
    await expect(open(closed)).rejects.toThrow(/no permission/);
  });
});
