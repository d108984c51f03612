// AMQP over TLS as clients see it: amqplib, pika and openssl s_client unchanged, nothing below TLS 1.2, client
// certificates where they are required, and certificates that are renewed under open connections.
import { spawn, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { connect as connectPlain } from "node:net";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { PROTOCOL_HEADER } from "@amqp/codec";
import amqplib from "amqplib";
import { afterAll, describe, expect, it } from "vitest";
import { failToStart, type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { Authority, missingOpenssl, type Pair } from "./authority.ts";

afterAll(releaseAll);

const reason = missingOpenssl();
const PYTHON = "/usr/bin/python3";

function tlsPort(gateway: Gateway): number {
  const line = gateway.lines.find(({ msg }) => msg.startsWith("serving AMQP 0-9-1"));
  return Number(line?.tlsPort);
}

function start(pair: Pair, env: Record<string, string> = {}, ...args: readonly string[]): Promise<Gateway> {
  const files = { AMQP_TLS_CERT: pair.cert, AMQP_TLS_KEY: pair.key, AMQP_TLS_PORT: "0" };
  return startGateway({ env: { ...files, ...env }, args: [...args] });
}

/** What amqplib says and hears over this port: a message through a queue of its own. */
async function roundTrip(port: number, options: object): Promise<string> {
  const connection = await amqplib.connect(`amqps://guest:guest@localhost:${port}`, options);
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  channel.sendToQueue(queue, Buffer.from("over TLS"));
  await channel.waitForConfirms();
  const message = await channel.get(queue, { noAck: true });
  await connection.close();
  return message === false ? "nothing" : message.content.toString();
}

/** A secured socket, or why there is none. */
function secure(port: number, options: ConnectionOptions): Promise<TLSSocket | Error> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", servername: "localhost", ...options });
    socket.once("secureConnect", () => resolve(socket));
    socket.on("error", resolve);
  });
}

/** In TLS 1.3 a server refuses a client's certificate after the client's side is done. */
async function answered(port: number, options: ConnectionOptions): Promise<"connection.start" | "refused"> {
  const socket = await secure(port, options);
  if (socket instanceof Error) return "refused";
  socket.write(Buffer.from(PROTOCOL_HEADER));
  return await new Promise((resolve) => {
    socket.once("data", () => resolve("connection.start"));
    socket.once("close", () => resolve("refused"));
  }).then((answer) => {
    socket.destroy();
    return answer as "connection.start" | "refused";
  });
}

describe.skipIf(reason !== undefined)("clients over TLS", () => {
  const authority = new Authority();
  const ca = readFileSync(authority.ca);

  it("amqplib, pika and openssl s_client, while plain clients go on beside them", async ({ skip }) => {
    const gateway = await start(authority.issue("server"));
    const port = tlsPort(gateway);
    expect(await roundTrip(port, { ca: [ca] })).toBe("over TLS");
    await expect(roundTrip(port, {})).rejects.toThrow(/certificate/);
    await (await amqplib.connect(gateway.url)).close();

    const openssl = spawn("openssl", ["s_client", "-quiet", "-connect", `127.0.0.1:${port}`, "-CAfile", authority.ca]);
    openssl.stdin.write(Buffer.from(PROTOCOL_HEADER));
    const said = await new Promise<Buffer>((resolve) => openssl.stdout.once("data", resolve));
    openssl.kill();
    expect(said.includes("AMQP 0-9-1 on NATS JetStream")).toBe(true);

    if (spawnSync(PYTHON, ["-c", "import pika"]).status !== 0) skip("pika is not installed");
    const script = [
      "import pika, ssl, sys",
      "context = ssl.create_default_context(cafile=sys.argv[2])",
      "options = pika.SSLOptions(context, 'localhost')",
      "c = pika.BlockingConnection(pika.ConnectionParameters('localhost', int(sys.argv[1]), ssl_options=options))",
      "ch = c.channel(); ch.confirm_delivery()",
      "q = ch.queue_declare('', exclusive=True).method.queue",
      "ch.basic_publish('', q, b'over TLS')",
      "print(ch.basic_get(q, auto_ack=True)[2].decode()); c.close()",
    ].join("\n");
    const pika = spawnSync(PYTHON, ["-c", script, `${port}`, authority.ca], { encoding: "utf8", timeout: 30_000 });
    expect(pika.stdout.trim(), pika.stderr).toBe("over TLS");
    await gateway.stop();
  });

  it("a large message, in many records, each way", async () => {
    const gateway = await start(authority.issue("server"), {}, "--port", "none");
    const connection = await amqplib.connect(`amqps://guest:guest@localhost:${tlsPort(gateway)}`, { ca: [ca] });
    const channel = await connection.createConfirmChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    const body = Buffer.alloc(700_000, "0123456789abcdef");
    for (let sent = 0; sent < 20; sent++) channel.sendToQueue(queue, body);
    await channel.waitForConfirms();
    for (let taken = 0; taken < 20; taken++) {
      const message = await channel.get(queue, { noAck: true });
      expect(message !== false && message.content.equals(body)).toBe(true);
    }
    await connection.close();
    await gateway.stop();
  });

  it("nobody below TLS 1.2, and nobody without TLS", async () => {
    const gateway = await start(authority.issue("server"), { AMQP_HANDSHAKE_TIMEOUT: "2" }, "--port", "none");
    const port = tlsPort(gateway);
    const old = { ca, minVersion: "TLSv1", ciphers: "ALL@SECLEVEL=0" } as const;
    for (const maxVersion of ["TLSv1", "TLSv1.1"] as const) {
      expect(await secure(port, { ...old, maxVersion })).toMatchObject({
        code: expect.stringContaining("PROTOCOL_VERSION"),
      });
    }
    const spoken = await secure(port, { ...old, maxVersion: "TLSv1.2" });
    if (spoken instanceof Error) throw spoken;
    expect(spoken.getProtocol()).toBe("TLSv1.2");
    spoken.destroy();

    // Plain AMQP at the TLS port hears no word of AMQP, and one that says nothing is hung up on in time.
    for (const octets of [Buffer.from(PROTOCOL_HEADER), Buffer.alloc(0), Buffer.from("1603010200", "hex")]) {
      const began = performance.now();
      const socket = connectPlain(port, "127.0.0.1");
      const heard: Buffer[] = [];
      socket.on("data", (chunk) => heard.push(chunk));
      socket.on("error", () => undefined);
      socket.write(octets);
      await new Promise((resolve) => socket.once("close", resolve));
      expect(Buffer.concat(heard).includes("AMQP")).toBe(false);
      expect(performance.now() - began).toBeLessThan(6_000);
    }
    const closes = gateway.lines.filter(({ msg }) => msg === "connection closed").map(({ reason: why }) => why);
    expect(closes).toContainEqual(expect.stringMatching(/TLS handshake failed/));
    await gateway.stop();
  });

  it("only those with a certificate of the authority, where it is required", async () => {
    const gateway = await start(authority.issue("server"), { AMQP_TLS_VERIFY: "require", AMQP_TLS_CA: authority.ca });
    const port = tlsPort(gateway);
    const load = ({ cert, key }: Pair): object => ({ ca: [ca], cert: readFileSync(cert), key: readFileSync(key) });
    expect(await roundTrip(port, load(authority.issue("client")))).toBe("over TLS");
    const stranger = new Authority("another authority").issue("client");
    const selfMade = authority.issue("ended", -1);
    for (const options of [{ ca }, load(stranger), load(selfMade)]) {
      expect(await answered(port, options)).toBe("refused");
      expect(await answered(port, { ...options, maxVersion: "TLSv1.2" })).toBe("refused");
    }
    await gateway.stop();
  });
});

describe.skipIf(reason !== undefined)("a certificate that is renewed", () => {
  const authority = new Authority();

  /** The fingerprint that a new connection is shown. */
  async function shown(port: number): Promise<string | undefined> {
    const socket = await secure(port, { ca: readFileSync(authority.ca) });
    if (socket instanceof Error) throw socket;
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  }
  /** The fingerprints that eight new connections are shown: workers take turns. */
  async function shownByAll(port: number): Promise<string[]> {
    return [...new Set(await Promise.all(Array.from({ length: 8 }, () => shown(port))))].map(String);
  }
  const fingerprint = (file: string): string => new X509Certificate(readFileSync(file)).fingerprint256;

  it.each([
    ["one process", []],
    ["two workers", ["--workers", "2"]],
  ])(
    "is shown on SIGHUP and when its files change, and connections go on: %s",
    async (_, args) => {
      const [first, second, third] = [authority.issue("first"), authority.issue("second"), authority.issue("third")];
      const served = {
        cert: join(authority.folder, `served-${args.length}.pem`),
        key: join(authority.folder, `served-${args.length}.key`),
      };
      const put = ({ cert, key }: Pair): void => {
        copyFileSync(key, `${served.key}.new`);
        renameSync(`${served.key}.new`, served.key);
        copyFileSync(cert, `${served.cert}.new`);
        renameSync(`${served.cert}.new`, served.cert);
      };
      put(first);
      const gateway = await start(served, {}, ...args);
      const port = tlsPort(gateway);
      expect(await shownByAll(port)).toEqual([fingerprint(first.cert)]);

      const connection = await amqplib.connect(`amqps://guest:guest@localhost:${port}`, {
        ca: [readFileSync(authority.ca)],
      });
      const channel = await connection.createConfirmChannel();
      const { queue } = await channel.assertQueue("", { exclusive: true });

      put(second);
      process.kill(gateway.pid, "SIGHUP");
      await expect.poll(() => shownByAll(port), { timeout: 10_000 }).toEqual([fingerprint(second.cert)]);

      put(third);
      await expect.poll(() => shownByAll(port), { timeout: 15_000 }).toEqual([fingerprint(third.cert)]);

      // What cannot be served is said, and the last good one stays.
      writeFileSync(served.key, readFileSync(first.key));
      const complains = (): boolean =>
        gateway.lines.some(({ msg }) => /stays as it was: the key in .* does not fit/.test(msg));
      await expect.poll(complains, { timeout: 10_000 }).toBe(true);
      expect(await shownByAll(port)).toEqual([fingerprint(third.cert)]);

      channel.sendToQueue(queue, Buffer.from("through all of it"));
      await channel.waitForConfirms();
      expect(await channel.get(queue, { noAck: true })).toMatchObject({ content: Buffer.from("through all of it") });
      await connection.close();
      await gateway.stop();
    },
    60_000,
  );
});

describe.skipIf(reason !== undefined)("a boot without a sound certificate is refused in one line", () => {
  const authority = new Authority();
  const good = authority.issue("server");
  const other = authority.issue("other");
  const nothing = join(authority.folder, "nothing.pem");
  const junk = join(authority.folder, "junk.pem");
  writeFileSync(junk, "junk");

  it.each([
    [
      "a certificate that is not there",
      { AMQP_TLS_CERT: nothing },
      /nothing\.pem of AMQP_TLS_CERT cannot be read \(ENOENT\)/,
    ],
    [
      "a key that is not there",
      { AMQP_TLS_KEY: nothing },
      /AMQP_TLS_KEY cannot be read \(ENOENT\): correct AMQP_TLS_KEY/,
    ],
    ["a key of another certificate", { AMQP_TLS_KEY: other.key }, /does not fit .*: name the pair/],
    ["no certificate in its file", { AMQP_TLS_CERT: junk }, /of AMQP_TLS_CERT holds no certificate: correct/],
    ["no key in its file", { AMQP_TLS_KEY: good.cert }, /of AMQP_TLS_KEY holds no private key/],
    [
      "no authority in its file",
      { AMQP_TLS_VERIFY: "require", AMQP_TLS_CA: junk },
      /of AMQP_TLS_CA holds no certificate/,
    ],
  ])("%s", async (_, env, line) => {
    const files = { AMQP_TLS_CERT: good.cert, AMQP_TLS_KEY: good.key, AMQP_TLS_PORT: "0" };
    const { code, lines } = await failToStart({ env: { ...files, ...env } });
    expect(code).toBe(1);
    const fatal = lines.filter(({ level }) => level === "fatal");
    expect(fatal).toHaveLength(1);
    expect(fatal[0]?.msg).toMatch(line);
  });
});
