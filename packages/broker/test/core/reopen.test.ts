/** An attempt to open a broker that fails leaves nothing to the next one on the same ground. */
import { BucketSilent, openBucket } from "@amqp/topology";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import { Broker } from "../../src/core/broker.ts";
import { Health } from "../../src/core/health.ts";
import { openBus } from "../../src/nats/bus.ts";
import { NatsPeers } from "../../src/nats/peers.ts";

const quiet = (): void => undefined;
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
let server: NatsServer;

beforeAll(async () => {
  server = await NatsServer.start();
});
afterAll(() => server.stop());

test("a lease that lapsed in an attempt that failed does not close the doors of the one that did not", async () => {
  const [publishing, delivering] = [await connect({ servers: server.url }), await connect({ servers: server.url })];
  const health = new Health(log, 300);
  const told: string[] = [];
  const bus = await openBus({ publishing, delivering, stream: "AMQP", root: "amqp", listener: health, log });
  const bucket = await openBucket(publishing, { name: "amqp" });
  let fails = true;
  const silent = new Proxy(bucket, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (name !== "lastRevision" || !fails) return member.bind(target) as unknown;
      // As when its lease lapses while it waits.
      return () => {
        health.absent();
        return Promise.reject(new BucketSilent("nobody answers"));
      };
    },
  });
  const peers = new NatsPeers(publishing, "amqp");
  const options = { root: "amqp", bus, bucket: silent, peers, health, log, lost: quiet, expirationOf: () => undefined };
  await expect(Broker.open(options)).rejects.toThrow(BucketSilent);
  // A bus on which nobody acts is asked for nobody's sake.
  expect(health.stands()).toBe(true);
  fails = false;
  const broker = await Broker.open(options);
  broker.join({ blocked: quiet, room: quiet, serving: quiet, closing: (reason) => told.push(reason) });
  await new Promise((resolve) => setTimeout(resolve, 800));
  expect(told).toEqual([]);
  expect(broker.holdsLease).toBe(true);
  await broker.close();
  await bus.close();
  await Promise.all([publishing.close(), delivering.close()]);
});
