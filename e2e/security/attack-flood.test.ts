// Strangers in numbers, and users beyond their share: half-open sockets, handshakes that crawl, logins that guess. The
// gateway refuses with a reason, its memory stays flat, and whoever behaves does not notice. design §9.
// AMQP_ATTACK_SOCKETS says how many sockets, 10,000 where the system lets a process have them.
import { connect, type Socket } from "node:net";
import { PROTOCOL_HEADER } from "@amqp/codec";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../harness/gateway.ts";
import { releaseAll } from "../harness/owned.ts";
import { AmqpSocket } from "../harness/socket.ts";
import { startCanary } from "../hostile/canary.ts";
import { growthDuring } from "../hostile/memory.ts";

afterAll(releaseAll);

let gateway: Gateway;
afterEach(() => gateway?.stop());

async function start(env: Record<string, string>): Promise<{ host: string; port: number }> {
  gateway = await startGateway({ env: { LOG_LEVEL: "info", ...env } });
  return { host: "127.0.0.1", port: gateway.port };
}

function openFiles(): number {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const soft = Number(userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? Number.POSITIVE_INFINITY : soft;
}

const WANTED = Number(process.env.AMQP_ATTACK_SOCKETS ?? 10_000);
const SOCKETS = Math.min(WANTED, openFiles() - 500);
if (SOCKETS < WANTED) console.warn(`only ${SOCKETS} of ${WANTED} sockets: the system's limit of open files`);

/** Sockets that say `octets` and no more. */
async function halfOpen(port: number, count: number, octets: Uint8Array): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let batch = 0; batch < count; batch += 500) {
    const some = Array.from({ length: Math.min(500, count - batch) }, () => connect(port, "127.0.0.1"));
    await Promise.all(
      some.map(
        (socket) =>
          new Promise<void>((resolve) => {
            socket.once("connect", resolve);
            socket.on("error", () => resolve());
            socket.on("data", () => undefined);
            socket.write(octets);
          }),
      ),
    );
    sockets.push(...some);
  }
  return sockets;
}

describe("half-open sockets", () => {
  it(`${SOCKETS} of them cost little memory, keep nobody out, and are hung up on in time`, async () => {
    const at = await start({ AMQP_HANDSHAKE_TIMEOUT: "20" });
    const canary = await startCanary(at);
    let sockets: Socket[] = [];
    const growth = await growthDuring(gateway.pid, async () => {
      sockets = await halfOpen(at.port, SOCKETS, Buffer.from(PROTOCOL_HEADER));
      const late = await AmqpSocket.open(at);
      await late.channel(1);
      late.destroy();
    });
    // A socket, its connection and connection.start: 20 KiB at most each.
    expect(growth).toBeLessThan(50 + (SOCKETS * 20) / 1024);
    const closed = Promise.all(
      sockets.map((socket) => (socket.closed ? undefined : new Promise((resolve) => socket.once("close", resolve)))),
    );
    await closed;
    const { rounds, slowest } = await canary.end();
    expect(rounds).toBeGreaterThan(50);
    expect(slowest).toBeLessThan(5_000);
  }, 120_000);

  it("beyond the limit the oldest makes room: a newcomer gets in at once", async () => {
    const at = await start({ AMQP_MAX_HANDSHAKES: "100", AMQP_HANDSHAKE_TIMEOUT: "60" });
    const sockets = await halfOpen(at.port, 300, Buffer.from("AMQP"));
    const began = performance.now();
    const newcomer = await AmqpSocket.open(at);
    expect(performance.now() - began).toBeLessThan(2_000);
    newcomer.destroy();
    await expect.poll(() => sockets.filter((socket) => socket.closed).length, { timeout: 5_000 }).toBeGreaterThan(199);
    for (const socket of sockets) socket.destroy();
    const why = gateway.lines.filter(({ reason }) => reason === "its handshake had to make room for others");
    expect(why.length).toBeGreaterThan(199);
  }, 30_000);
});

describe("a handshake that crawls", () => {
  it("is hung up on when its time is over, however busily it says an octet more", async () => {
    const at = await start({ AMQP_HANDSHAKE_TIMEOUT: "2" });
    const canary = await startCanary(at);
    const began = performance.now();
    const sockets = await halfOpen(at.port, 200, Buffer.from("A"));
    const rest = Buffer.concat([
      Buffer.from(PROTOCOL_HEADER).subarray(1),
      Buffer.from([1, 0, 0, 0, 0, 4, 0]),
      Buffer.alloc(999),
    ]);
    let said = 0;
    const crawl = setInterval(() => {
      for (const socket of sockets) if (!socket.destroyed) socket.write(rest.subarray(said, said + 1));
      said++;
    }, 100);
    await Promise.all(
      sockets.map((socket) => (socket.closed ? undefined : new Promise((r) => socket.once("close", r)))),
    );
    clearInterval(crawl);
    // Two seconds, five more for an answer to connection.close, and what a busy machine takes.
    expect(performance.now() - began).toBeLessThan(12_000);
    expect((await canary.end()).slowest).toBeLessThan(5_000);
  }, 30_000);

  it("cannot make the gateway keep what it says: beyond 16 KiB it is refused", async () => {
    const at = await start({});
    const growth = await growthDuring(gateway.pid, async () => {
      const frame = Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0x30, 0]), Buffer.alloc(0x3000), Buffer.from([0xce])]);
      const sockets = await halfOpen(
        at.port,
        200,
        Buffer.concat([Buffer.from(PROTOCOL_HEADER), ...Array(20).fill(frame)]),
      );
      for (const socket of sockets) socket.destroy();
    });
    expect(growth).toBeLessThan(100);
  }, 30_000);
});

describe("more than its share", () => {
  it.each([
    ["of one address", { AMQP_MAX_CONNECTIONS_PER_ADDRESS: "3" }, /of this address is reached; close other/],
    ["of one user", { AMQP_MAX_CONNECTIONS_PER_USER: "3" }, /of this user is reached; close other/],
    ["of the gateway", { AMQP_MAX_CONNECTIONS: "3" }, /connection limit \(3\) is reached; close other/],
  ])("%s is refused with 530, and one that goes makes room", async (_, env, says) => {
    const at = await start(env);
    const open = [await AmqpSocket.open(at), await AmqpSocket.open(at), await AmqpSocket.open(at)];
    const more = AmqpSocket.connect(at);
    await more.login();
    more.tune();
    more.send(0, "connection.open", { virtualHost: "/" });
    const { replyCode, replyText } = await more.expect("connection.close");
    expect(replyCode).toBe(530);
    expect(replyText).toMatch(says);
    more.destroy();
    open[0]?.destroy();
    await expect
      .poll(() =>
        AmqpSocket.open(at).then(
          (socket) => socket.destroy() ?? "in",
          () => "out",
        ),
      )
      .toBe("in");
    for (const socket of open) socket.destroy();
  });

  it("of queues and bindings of a namespace is refused on the channel, over connections that come and go", async () => {
    const at = await start({ AMQP_MAX_NAMESPACE_QUEUES: "5", AMQP_MAX_NAMESPACE_BINDINGS: "5" });
    let refused: { replyCode: number; replyText: string } | undefined;
    for (let number = 0; number < 6 && refused === undefined; number++) {
      const socket = await AmqpSocket.open(at);
      await socket.channel(1);
      socket.send(1, "queue.declare", { queue: `q${number}`, durable: true });
      const answer = await socket.next();
      if (answer.kind === "method" && answer.method.name === "channel.close") refused = answer.method.fields;
      socket.destroy();
    }
    expect(refused).toMatchObject({
      replyCode: 506,
      replyText: expect.stringMatching(/namespace has 5 queues, the limit/),
    });
    const socket = await AmqpSocket.open(at);
    await socket.channel(1);
    socket.send(1, "queue.declare", { queue: "q0", durable: true }); // what is there may be declared again
    await socket.expect("queue.declare-ok");
    socket.send(1, "exchange.declare", { exchange: "d", type: "direct" });
    await socket.expect("exchange.declare-ok");
    for (let key = 0; key < 5; key++) {
      socket.send(1, "queue.bind", { queue: "q0", exchange: "d", routingKey: `${key}` });
      const answer = await socket.next();
      if (answer.kind === "method" && answer.method.name === "channel.close")
        throw new Error(answer.method.fields.replyText);
    }
    socket.send(1, "queue.bind", { queue: "q0", exchange: "d", routingKey: "one-too-many" });
    expect(await socket.expect("channel.close")).toMatchObject({ replyCode: 506 });
    socket.destroy();
  });

  it("of a message is refused on its header", async () => {
    const at = await start({ AMQP_MAX_MESSAGE_SIZE: "1000" });
    const socket = await AmqpSocket.open(at);
    await socket.channel(1);
    socket.publish(1, { routingKey: "nobody" }, Buffer.alloc(1001));
    expect(await socket.expect("channel.close")).toMatchObject({ replyCode: 311 });
    socket.destroy();
  });
});

describe("the log", () => {
  it("holds no password, and at the end the counters of what was refused", async () => {
    const at = await start({ LOG_LEVEL: "trace", AMQP_MAX_CONNECTIONS_PER_USER: "1" });
    const secret = "hunter2-secret";
    const first = await AmqpSocket.open(at, { response: `\0ada\0${secret}` });
    const second = AmqpSocket.connect(at);
    await second.login({ response: `\0ada\0${secret}` });
    second.tune();
    second.send(0, "connection.open", { virtualHost: "/" });
    await second.expect("connection.close");
    for (const response of [`\0ada\0${secret}\0more`, secret, `\0${secret}`]) {
      const socket = AmqpSocket.connect(at);
      await socket.start({ response });
      expect(await socket.expect("connection.close")).toMatchObject({ replyCode: 502 });
      socket.destroy();
    }
    for (const socket of [first, second]) socket.destroy();
    await gateway.stop();
    const log = gateway.lines.map((line) => JSON.stringify(line)).join("\n");
    expect(log).not.toContain(secret);
    expect(log).not.toContain(Buffer.from(secret).toString("base64").slice(0, 12));
    const last = gateway.lines.find(({ msg }) => msg === "what the ports have seen");
    expect(last?.counters).toMatchObject({
      accepted: 5,
      opened: 1,
      failedLogins: 3,
      refusals: { "too-many-of-user": 1, "login-malformed": 3 },
    });
  });
});
