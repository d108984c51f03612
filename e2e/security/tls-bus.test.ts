// TLS between the gateway and its bus: the authority, the client certificate and a handshake that comes first, each
// needed by a real nats-server; and what is missing is one line with its remedy.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import amqplib from "amqplib";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { failToStart, startGateway } from "../harness/gateway.ts";
import { type NatsServer, startNats } from "../harness/nats-server.ts";
import { releaseAll } from "../harness/owned.ts";
import { Authority, missingOpenssl } from "./authority.ts";

afterAll(releaseAll);

const reason = missingOpenssl();

describe.skipIf(reason !== undefined)("a bus with TLS", () => {
  const authority = new Authority();
  const server = authority.issue("nats");
  const own = authority.issue("gateway");
  let bus: NatsServer | undefined;
  afterEach(() => bus?.stop());

  async function serve(...lines: readonly string[]): Promise<string> {
    const files = [`cert_file: ${JSON.stringify(server.cert)}`, `key_file: ${JSON.stringify(server.key)}`];
    const tls = [...files, `ca_file: ${JSON.stringify(authority.ca)}`, ...lines].join("\n");
    bus = await startNats({ conf: `tls {\n${tls}\n}` });
    return `tls://localhost:${bus.port}`;
  }

  async function serves(env: Record<string, string>): Promise<void> {
    const gateway = await startGateway({ env });
    const connection = await amqplib.connect(gateway.url);
    const channel = await connection.createConfirmChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    channel.sendToQueue(queue, Buffer.from("over two wires"));
    await channel.waitForConfirms();
    expect(await channel.get(queue, { noAck: true })).toMatchObject({ content: Buffer.from("over two wires") });
    await connection.close();
    await gateway.stop();
  }

  async function refusal(env: Record<string, string>): Promise<string> {
    const { code, lines } = await failToStart({ env });
    expect(code).toBe(1);
    const fatal = lines.filter(({ level }) => level === "fatal");
    expect(fatal, JSON.stringify(lines)).toHaveLength(1);
    return fatal[0]?.msg ?? "";
  }

  it("is served by its authority, also where the address says nats://", async () => {
    const url = await serve();
    await serves({ NATS_URL: url, NATS_CA: authority.ca });
    await serves({ NATS_URL: url.replace("tls://", "nats://"), NATS_CA: authority.ca });
    expect(await refusal({ NATS_URL: url })).toMatch(/shows a certificate that is not trusted .*NATS_CA/);
    expect(await refusal({ NATS_URL: url.replace("tls://", "nats://") })).toMatch(/not trusted .*NATS_CA/);
    const elsewhere = new Authority("another authority");
    expect(await refusal({ NATS_URL: url, NATS_CA: elsewhere.ca })).toMatch(/not trusted .*NATS_CA/);
    expect(await refusal({ NATS_URL: url.replace("localhost", "127.0.0.2"), NATS_CA: authority.ca })).toMatch(
      /a certificate of another name|cannot be reached/,
    );
  }, 120_000);

  it("that asks for a client certificate gets NATS_CERT", async () => {
    const url = await serve("verify: true");
    const env = { NATS_URL: url, NATS_CA: authority.ca };
    await serves({ ...env, NATS_CERT: own.cert, NATS_KEY: own.key });
    expect(await refusal(env)).toMatch(/NATS_CERT and NATS_KEY/);
    expect(await refusal({ ...env, NATS_CERT: own.cert, NATS_KEY: server.key })).toMatch(/does not fit/);
    const junk = join(authority.folder, "junk.pem");
    writeFileSync(junk, "junk");
    expect(await refusal({ ...env, NATS_CA: junk })).toMatch(/of NATS_CA holds no certificate/);
    expect(await refusal({ ...env, NATS_CERT: `${junk}.none`, NATS_KEY: own.key })).toMatch(
      /of NATS_CERT cannot be read \(ENOENT\)/,
    );
  }, 60_000);

  it("whose handshake comes first is reached with NATS_TLS_FIRST", async () => {
    const url = await serve("handshake_first: true");
    await serves({ NATS_URL: url, NATS_CA: authority.ca, NATS_TLS_FIRST: "1" });
  });

  it("is never left for one without: a server that offers no TLS gets no login", async () => {
    bus = await startNats({ conf: "authorization { user: ada, password: hunter2 }" });
    const env = { NATS_URL: `tls://127.0.0.1:${bus.port}`, NATS_USER: "ada", NATS_PASSWORD: "hunter2" };
    expect(await refusal(env)).toMatch(/offers no TLS, which was asked for/);
  });
});
