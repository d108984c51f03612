/** What must hold of the bus whatever happened: no record is half done, and every cursor is what the records say. */
import { openBucket, Topology } from "@amqp/topology";
import { connect } from "@nats-io/transport-node";
import type { ExpectStatic } from "vitest";
import type { Rig } from "./rig.ts";

/** What the tests declare. */
export const NAMES = { queues: ["q", "r"], exchanges: ["x", "y"] };

/** Every record is ready and of the present life, and the cursors are what the records say. */
export async function whole(url: string, rig: Rig, expect: ExpectStatic): Promise<void> {
  const connection = await connect({ servers: url });
  const lost = (error: Error): never => {
    throw error;
  };
  const topology = await Topology.open(await openBucket(connection, { name: "amqp" }), { root: "amqp", lost });
  const seen = async () => {
    await topology.fence();
    const queues = [...topology.queues()];
    const states = [...queues, ...topology.exchanges()].map(({ name, state }) => ({ name, state }));
    const bindings = [...NAMES.queues.flatMap((name) => topology.bindingsOf(name))];
    const closing = bindings.flatMap(({ queue, exchange, key, intervals }) =>
      intervals.some((interval) => interval.closing === true) ? [{ queue, exchange, key }] : [],
    );
    const voided = bindings.flatMap(({ queue, exchange, key, intervals }) =>
      intervals.every(({ queueId }) => queueId === topology.queue(queue)?.id) ? [] : [{ queue, exchange, key }],
    );
    const standing = bindings.flatMap(({ queue, exchange, key, intervals }) =>
      intervals.some(({ until, exchangeId }) => until === undefined && exchangeId !== topology.exchange(exchange)?.id)
        ? [{ queue, exchange, key }]
        : [],
    );
    const spell = (one: { queue: string; queueId: number; filters: readonly string[] }): string =>
      JSON.stringify([one.queue, one.queueId, [...one.filters].sort()]);
    return {
      unfinished: states.filter(({ state }) => state !== "ready"),
      closing,
      voided,
      standing,
      cursors: (await rig.bus.cursors()).map(spell).sort(),
      records: queues
        .map(({ name, id }) => spell({ queue: name, queueId: id, filters: topology.filters(name) }))
        .sort(),
    };
  };
  try {
    const end = async (): Promise<object> => {
      const { cursors, records, ...rest } = await seen();
      return { ...rest, differ: JSON.stringify(cursors) === JSON.stringify(records) ? [] : { cursors, records } };
    };
    await eventually(expect, end, { unfinished: [], closing: [], voided: [], standing: [], differ: [] });
  } finally {
    await topology.close();
    await connection.close();
  }
}

/** What it must come to within five seconds. */
export async function eventually(expect: ExpectStatic, read: () => Promise<unknown>, wanted: unknown): Promise<void> {
  const end = performance.now() + 5000;
  let seen = await read();
  for (; JSON.stringify(seen) !== JSON.stringify(wanted) && performance.now() < end; seen = await read())
    await new Promise((resolve) => setTimeout(resolve, 50));
  expect(seen).toEqual(wanted);
}
