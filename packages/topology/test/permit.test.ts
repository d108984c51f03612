/** A write of a record leaves for the bus while it is permitted, or not at all. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBucket } from "../src/nats.ts";
import { Topology } from "../src/topology.ts";
import { NatsServer } from "./nats-server.ts";
import { queueRecord } from "./records.ts";

const lost = (error: Error): void => {
  throw error;
};

describe("permit", () => {
  let server: NatsServer;

  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterAll(() => server.stop());

  it("is asked of each write when it leaves, not when it was asked for", async () => {
    let may = true;
    const permit = (): void => {
      if (!may) throw new Error("not any more");
    };
    const bucket = await openBucket(await server.connect(), { name: "late" });
    const topology = await Topology.open(bucket, { root: "amqp", lost, permit });
    const writes = Array.from({ length: 300 }, (_, n) => topology.createQueue(`q${n}`, queueRecord()));
    // Those for which there is room are on their way; the others wait for their turn.
    may = false;
    const outcomes = await Promise.allSettled(writes);
    const written = outcomes.filter(({ status }) => status === "fulfilled").length;
    expect(written).toBeGreaterThan(0);
    expect(written).toBeLessThan(300);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ message: "not any more" });
    await topology.fence();
    expect([...topology.queues()]).toHaveLength(written);
    // The fleet's word is nobody's alone.
    expect(await topology.writeFleet(true)).toMatchObject({ clean: true });
    may = true;
    expect(await topology.createQueue("again", queueRecord())).toMatchObject({ name: "again" });
    await topology.close();
  });

  it("is followed by the octets of the write, before anything else runs", async () => {
    const connection = await server.connect();
    const { socket } = (connection as unknown as { protocol: { transport: { socket: Sent } } }).protocol.transport;
    const left: number[] = [];
    const permit = (): void => {
      const before = socket.bytesWritten;
      queueMicrotask(() => left.push(socket.bytesWritten - before));
    };
    const topology = await Topology.open(await openBucket(connection, { name: "prompt" }), {
      root: "amqp",
      lost,
      permit,
    });
    const made = await topology.createQueue("q", queueRecord({ state: "making" }));
    if (made === "conflict") throw new Error("nobody else is there");
    const ready = await topology.updateQueue(made, { state: "ready" });
    if (ready === "conflict") throw new Error("nobody else is there");
    await topology.removeQueue(ready);
    expect(left).toHaveLength(3);
    for (const octets of left) expect(octets).toBeGreaterThan(100);
    await topology.close();
  });
});

interface Sent {
  readonly bytesWritten: number;
}
