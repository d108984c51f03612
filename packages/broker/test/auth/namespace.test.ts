import { openBucket } from "@amqp/topology";
import type { NatsConnection } from "@nats-io/transport-node";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import { Broker } from "../../src/core/broker.ts";
import type { Bus } from "../../src/core/bus.ts";
import { BusListeners } from "../../src/core/bus-listeners.ts";
import { Health } from "../../src/core/health.ts";
import type { Log } from "../../src/core/log.ts";
import { type Namespace, NamespacedBus, toNamespace } from "../../src/core/namespace.ts";
import { openBus } from "../../src/nats/bus.ts";
import { NatsPeers } from "../../src/nats/peers.ts";
import { drain, exchangeSpec, publish, queueSpec } from "../core/rig.ts";

const quiet = (): void => undefined;
const log: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet };

let server: NatsServer;
let connections: NatsConnection[];
let bus: Bus & { close(): Promise<void> };
let listeners: BusListeners;

beforeAll(async () => {
  server = await NatsServer.start();
  connections = [await server.connect(), await server.connect()];
  const [publishing, delivering] = connections as [NatsConnection, NatsConnection];
  listeners = new BusListeners();
  bus = await openBus({ publishing, delivering, stream: "AMQP", root: "amqp", listener: listeners, log });
});
afterAll(async () => {
  await bus.close();
  await server.stop();
});

const namespaceOf = (org: string): Namespace => {
  const namespace = toNamespace(org);
  if (namespace === undefined) throw new Error(org);
  return namespace;
};

/** A broker of that organisation, or the flat one. */
async function open(org?: string): Promise<Broker> {
  const publishing = connections[0] as NatsConnection;
  const bucket = await openBucket(publishing, { name: "amqp" });
  const health = new Health(log, 30_000);
  listeners.join(health);
  const common = { health, log, lost: quiet, expirationOf: () => undefined };
  if (org === undefined) {
    return Broker.open({ ...common, root: "amqp", bus, bucket, peers: new NatsPeers(publishing, "amqp") });
  }
  const namespace = namespaceOf(org);
  return Broker.open({
    ...common,
    root: namespace.root,
    bus: new NamespacedBus(bus, namespace),
    bucket: bucket.within(namespace.keys),
    peers: new NatsPeers(publishing, "amqp", `@${org}.`),
  });
}

describe("a namespace", () => {
  test("law: no two organisations share a spelling, and none is a part of another's", () => {
    const org = fc.stringMatching(/^[A-Za-z0-9_-]{1,63}$/);
    fc.assert(
      fc.property(org, org, (one, two) => {
        if (one === two) return;
        const [a, b] = [namespaceOf(one), namespaceOf(two)];
        expect(a.cursors.startsWith(b.cursors)).toBe(false);
        expect(a.keys.startsWith(b.keys)).toBe(false);
        expect(`${a.root}.`.startsWith(`${b.root}.`)).toBe(false);
      }),
    );
  });

  test("law: what is no word of letters, digits, _ and - is no organisation", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const isName = typeof value === "string" && /^[A-Za-z0-9_-]{1,63}$/.test(value) && !value.includes("\n");
        expect(toNamespace(value) !== undefined).toBe(isName);
      }),
    );
  });
});

describe("brokers side by side on one stream and bucket", () => {
  test("hold the same names apart: widest bindings, counts, deletion", async () => {
    const brokers = [await open(), await open("acme"), await open("a")];
    const sessions = brokers.map((broker) => broker.openSession());
    for (const [n, broker] of brokers.entries()) {
      const session = sessions[n] as ReturnType<Broker["openSession"]>;
      for (const [name, kind] of [
        ["t", "topic"],
        ["f", "fanout"],
      ] as const) {
        expect(await broker.declareExchange(exchangeSpec(name, kind))).toBeUndefined();
      }
      await broker.declareQueue(session, queueSpec("q"));
      const bindings = ["t", "f"].map((exchange) => ({ queue: "q", exchange, key: "#", arguments: "" }));
      expect(await broker.bind(session, bindings)).toEqual({ done: 2, refusal: undefined });
    }
    for (const [n, broker] of brokers.entries()) {
      for (const [exchange, key] of [
        ["t", ""],
        ["t", "acme.q"],
        ["f", "x"],
        ["", "q"],
      ] as const) {
        await publish(broker, exchange, key, `${n} ${exchange} ${key}`);
      }
    }
    for (const [n, broker] of brokers.entries()) {
      const session = sessions[n] as ReturnType<Broker["openSession"]>;
      expect(await broker.checkQueue(session, "q")).toEqual({ name: "q", messages: 4, consumers: 0 });
      expect(await drain(broker, session, "q")).toEqual([`${n} t `, `${n} t acme.q`, `${n} f x`, `${n}  q`]);
    }
    await brokers[1]?.deleteQueue(sessions[1] as never, "q", { ifUnused: false, ifEmpty: false });
    await publish(brokers[0] as Broker, "", "q", "still");
    expect(await drain(brokers[0] as Broker, sessions[0] as never, "q")).toEqual(["still"]);
    for (const broker of brokers) await broker.close();
  });

  test("a boot of one removes nothing of another's, and reads back its own", async () => {
    const acme = await open("acme");
    const session = acme.openSession();
    await acme.declareQueue(session, queueSpec("kept"));
    await publish(acme, "", "kept", "1");
    for (const org of [undefined, "a", "b"]) await (await open(org)).close();
    await acme.close();
    expect((await bus.cursors()).map(({ queue }) => queue)).toContain("acme@kept");
    await (await open()).close();
    const again = await open("acme");
    expect(await drain(again, again.openSession(), "kept")).toEqual(["1"]);
    await again.close();
  });

  test("a broker says whether its stop would take something", async () => {
    const broker = await open("t");
    const session = broker.openSession();
    await broker.declareQueue(session, queueSpec("durable"));
    await broker.declareExchange(exchangeSpec("durable", "topic"));
    expect(broker.holdsTransient).toBe(false);
    await broker.declareExchange(exchangeSpec("x", "topic", { durable: false }));
    expect(broker.holdsTransient).toBe(true);
    await broker.deleteExchange("x", { ifUnused: false });
    await broker.declareQueue(session, queueSpec("q", { durable: false }));
    expect(broker.holdsTransient).toBe(true);
    await broker.deleteQueue(session, "q", { ifUnused: false, ifEmpty: false });
    expect(broker.holdsTransient).toBe(false);
    await broker.close();
  });

  test("a boot that fails leaves no watch and no lease behind", async () => {
    const namespace = namespaceOf("broken");
    const publishing = connections[0] as NatsConnection;
    const bucket = (await openBucket(publishing, { name: "amqp" })).within(namespace.keys);
    const broken = new NamespacedBus(bus, namespace);
    broken.cursors = () => Promise.reject(new Error("no list"));
    broken.lastSequence = () => Promise.reject(new Error("no sequence"));
    const health = new Health(log, 30_000);
    const peers = new NatsPeers(publishing, "amqp", "@broken.");
    const options = { root: namespace.root, bus: broken, bucket, peers, health, log, lost: quiet };
    await expect(Broker.open({ ...options, expirationOf: () => undefined })).rejects.toThrow(/no /);
    const began = performance.now();
    const next = await open("broken");
    expect(performance.now() - began).toBeLessThan(1500); // else it waited for a lease to expire
    await next.close();
  });
});
