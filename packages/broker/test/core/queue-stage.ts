/**
 * A queue of its own, with a cursor, for each test of a file, on the file's one site.
 *
 * Used by: the queue's tests. Separate from the site because this one registers hooks: a file sets its stage once.
 */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { Delivery } from "../../src/core/message.ts";
import type { QueueCursor } from "../../src/core/queue.ts";
import { acknowledged, type Client } from "./queue-client.ts";
import { Site } from "./queue-site.ts";

export interface Stage {
  readonly site: Site;
  /** The queue. */
  readonly name: string;
  readonly cursor: QueueCursor;
  /** Of what is published straight to the queue. */
  readonly subject: string;
  /** A client that acknowledges what it gets. */
  subscribe(client: Client): { cancel(): void };
  /** As {@link Site.publish}, straight to the queue. */
  publish(count: number, options?: Parameters<Site["publish"]>[2]): Promise<void>;
  /** Gets what is there, to be acknowledged. */
  take(): Promise<Delivery>;
  /** Nothing of it is left at the bus. */
  expectEmpty(): Promise<void>;
}

/** @param file what the queues are named after */
export function setStage(file: string): Stage {
  let site: Site;
  let cursor: QueueCursor;
  let name = "";
  let count = 0;
  beforeAll(async () => {
    site = await Site.open();
  });
  afterAll(async () => {
    await site.close();
  });
  beforeEach(async () => {
    name = `${file}-${count++}`;
    await site.declare(name);
    cursor = site.cursor(name);
  });
  afterEach(async () => {
    site.lease = true;
    await cursor.close();
  });
  const subject = (): string => `amqp._.${name}`;
  return {
    get site() {
      return site;
    },
    get name() {
      return name;
    },
    get cursor() {
      return cursor;
    },
    get subject() {
      return subject();
    },
    subscribe: (client) => cursor.subscribe(client, acknowledged(client)),
    publish: (count, options) => site.publish(subject(), count, options),
    take: async () => {
      const delivery = await cursor.get(true);
      if (delivery === undefined) throw new Error("empty");
      return delivery;
    },
    expectEmpty: () => site.expectEmpty(name),
  };
}
