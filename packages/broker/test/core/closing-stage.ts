/**
 * Replicas on one bus, and a queue of which a binding is being undone: what the tests of that share.
 *
 * Used by: the tests of closing. Separate from rig because it registers hooks: a file sets its stage once.
 */
import type { Bucket, BucketListener } from "@amqp/topology";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { NatsServer } from "../../../topology/test/nats-server.ts";
import type { Broker } from "../../src/core/broker.ts";
import type { Session } from "../../src/core/verbs.ts";
import { isRefusal } from "../../src/refusals.ts";
import { stored } from "../nats/stored.ts";
import { before } from "./before.ts";
import { type Between, exchangeSpec, openRig, queueSpec, type Rig, type Taker } from "./rig.ts";
import { eventually, whole } from "./whole.ts";

/** How late a mirror is, milliseconds. */
export const LATE = 600;
export const ON_K = { queue: "q", exchange: "x", key: "k", arguments: "" };
export const ON_L = { ...ON_K, key: "l" };

export type At = readonly [Broker, Session];

export interface Stage {
  readonly server: NatsServer;
  /** Another replica; the first one leads. */
  replica(between?: Between): Promise<At>;
  /** Ends all of them. */
  close(): Promise<void>;
  /** Every record and every cursor is what it must be. */
  expectWhole(): Promise<void>;
}

export function setStage(): Stage {
  let server: NatsServer;
  const rigs: Rig[] = [];
  const close = async (): Promise<void> => {
    for (const rig of rigs.splice(0)) await rig.close();
  };
  beforeAll(async () => {
    server = await NatsServer.start();
  });
  afterAll(async () => {
    await close();
    await server.stop();
  });
  afterEach(async () => {
    const { broker, bus } = rigs[0] as Rig;
    const session = broker.openSession();
    for (const name of ["q", "r"]) await broker.deleteQueue(session, name, { ifUnused: false, ifEmpty: false });
    for (const name of ["x", "y"]) await broker.deleteExchange(name, { ifUnused: false });
    await eventually(expect, () => stored(bus), 0);
  });
  return {
    get server() {
      return server;
    },
    replica: async (between = {}) => {
      const rig = await openRig(server.url, between);
      rigs.push(rig);
      return [rig.broker, rig.broker.openSession()];
    },
    close,
    expectWhole: () => whole(server.url, rigs[0] as Rig, expect),
  };
}

/** The first one leads: x, with q on k and l. */
export async function bound(broker: Broker, session: Session): Promise<void> {
  await broker.declareExchange(exchangeSpec("x", "topic"));
  await broker.declareQueue(session, queueSpec("q"));
  await broker.bind(session, [ON_K, ON_L]);
}

export const textsOf = ({ deliveries }: Taker): string[] => deliveries.map(({ body }) => Buffer.from(body).toString());
/** Whether a mandatory publish there, to x on k, would be taken. */
export function isRoutable(at: Broker): boolean {
  const route = at.route("x", "k");
  return !isRefusal(route) && at.routable(route);
}

export const soon = (read: () => unknown, timeout = 5_000) => expect.poll(read, { timeout, interval: 5 });

/** Holds back the writes of that binding's record, each until it is let go. */
export class Gate {
  #waiting: (() => void)[] = [];
  isShut = false;

  readonly bucket = (bucket: Bucket): Bucket =>
    before(bucket, "update", async ([key]) => {
      if (this.isShut && String(key).startsWith("b.q.x.")) await new Promise<void>((go) => this.#waiting.push(go));
    });

  get waiting(): number {
    return this.#waiting.length;
  }

  open(): void {
    this.isShut = false;
    for (const go of this.#waiting.splice(0)) go();
  }
}

/** A broker of before there was `closing`: it takes no notice of it. */
export function old(bucket: Bucket): Bucket {
  return new Proxy(bucket, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (name !== "watch") return member.bind(target);
      return (listener: BucketListener) =>
        target.watch({
          lost: (error) => listener.lost(error),
          entry: (entry) => {
            const text = entry.value && Buffer.from(entry.value).toString().replace('"closing":true,', "");
            listener.entry(text === undefined ? entry : { ...entry, value: Buffer.from(text) });
          },
        });
    },
  });
}
