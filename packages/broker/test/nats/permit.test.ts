/** A change of a cursor leaves for the bus while it is permitted, or not at all. */
import { afterEach, expect, it } from "vitest";
import type { JetStreamBus } from "../../src/nats/bus.ts";
import { NatsServer, type Opened, open } from "./harness.ts";

let server: NatsServer;
let opened: Opened;

const SPEC = { queue: "q", filters: ["amqp._.q"], revision: 1, queueId: 1 };
const WIDER = { ...SPEC, filters: ["amqp._.q", "amqp.x"] };

afterEach(async () => {
  await opened.close();
  await server.stop();
});

async function start(): Promise<JetStreamBus> {
  server = await NatsServer.start();
  opened = await open(server);
  await opened.bus.createCursor(SPEC);
  return opened.bus;
}

const CHANGES: readonly (readonly [string, (bus: JetStreamBus, permit: () => void) => Promise<unknown>])[] = [
  ["an update", (bus, permit) => bus.updateCursor(WIDER, { permit })],
  ["a deletion", (bus, permit) => bus.deleteCursor("q", permit)],
  ["a creation", (bus, permit) => bus.createCursor({ ...SPEC, queue: "r" }, permit)],
];

it.each(CHANGES)("%s that waits for the bus is not made when it may not be any more", async (_, change) => {
  const bus = await start();
  let may = true;
  let asked = 0;
  await server.kill();
  await expect.poll(() => bus.present).toBe(false);
  const changing = change(bus, () => {
    asked++;
    if (!may) throw new Error("not any more");
  });
  const outcome = expect(changing).rejects.toThrow("not any more");
  await new Promise((resolve) => setTimeout(resolve, 100));
  may = false;
  await server.run();
  await outcome;
  // Only when it was about to leave.
  expect(asked).toBe(1);
  expect(await bus.cursorState("q")).toMatchObject({ filters: SPEC.filters });
  expect(await bus.cursorState("r")).toBeUndefined();
});

it.each(CHANGES)("%s leaves in the turn in which it was permitted, before anything else runs", async (_, change) => {
  const bus = await start();
  const { socket } = (opened.delivering as unknown as { protocol: { transport: { socket: Sent } } }).protocol.transport;
  let written = 0;
  await change(bus, () => {
    const before = socket.bytesWritten;
    queueMicrotask(() => {
      written = socket.bytesWritten - before;
    });
  });
  expect(written).toBeGreaterThan(0);
});

interface Sent {
  readonly bytesWritten: number;
}
