// What a turn hands out and what leaves at its end, in a process that stands still in between.
import { encodeShortstr } from "@amqp/codec";
import { describe, expect, it } from "vitest";
import type { Verbs } from "../../src/core/verbs.ts";
import { standStill } from "../still.ts";
import { HANDSHAKE, Peer, quietVerbs } from "./rig.ts";

const OPENED = ["connection.start", "connection.tune", "connection.open-ok"];
const DELIVERY = {
  sequence: 1,
  exchange: "",
  routingKey: "q",
  properties: new Uint8Array(2),
  body: Buffer.from("body"),
  redelivered: false,
  settle: () => undefined,
};

async function open(): Promise<{ readonly peer: Peer; readonly verbs: { holdsLease: boolean } }> {
  const verbs: Verbs & { holdsLease: boolean } = { ...quietVerbs(), holdsLease: true };
  const peer = new Peer(verbs);
  peer.connection.receive(HANDSHAKE);
  await peer.settle();
  return { peer, verbs };
}

function deliver({ connection: { outbox } }: Peer): void {
  outbox.deliver(1, encodeShortstr("c"), 1, DELIVERY);
}

describe("a delivery leaves at the end of its turn", () => {
  it("where the process went on at once, without asking for the lease", async () => {
    const { peer, verbs } = await open();
    verbs.holdsLease = false;
    deliver(peer);
    await peer.settle();
    expect(peer.names).toEqual([...OPENED, "basic.deliver"]);
  });

  it("where it stood still and the lease is held still", async () => {
    const { peer } = await open();
    deliver(peer);
    standStill(300);
    await peer.settle();
    expect(peer.names).toEqual([...OPENED, "basic.deliver"]);
  });

  it("but not where it stood still and the lease is gone: it may be another's; the client is told to start anew", async () => {
    const { peer, verbs } = await open();
    peer.connection.outbox.confirm(1, 1, true);
    deliver(peer);
    standStill(300);
    verbs.holdsLease = false;
    await peer.settle();
    expect(peer.names).toEqual([...OPENED, "connection.close"]);
    expect(peer.methods.at(-1)?.fields).toMatchObject({ replyCode: 320 });
    expect(peer.errors).toEqual([]);
  });

  it("as does everything else, which needs no lease", async () => {
    const { peer, verbs } = await open();
    peer.connection.outbox.confirm(1, 1, true);
    standStill(300);
    verbs.holdsLease = false;
    await peer.settle();
    expect(peer.names).toEqual([...OPENED, "basic.ack"]);
  });
});
