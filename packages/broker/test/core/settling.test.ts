// What is said to the bus of a queue's deliveries, where a sweep came in between.
import { expect, it } from "vitest";
import type { Bus } from "../../src/core/bus.ts";
import { Settling } from "../../src/core/settling.ts";

const answerable = (sequence: number) => ({ sequence, token: `${sequence}` });

/** Keeps what it is told. */
function open(): { readonly settling: Settling; readonly said: string[]; readonly again: number[] } {
  const said: string[] = [];
  const again: number[] = [];
  const bus = {
    settle: (token: string, how: string) => said.push(`${how} ${token}`),
    ackAbandoned: (_: string, sequence: number) => again.push(sequence),
    settled: async () => true,
  };
  return { settling: new Settling("q", bus as unknown as Bus, () => true), said, again };
}

it("says acknowledgements that may be lost again, but not those that a sweep has made void", () => {
  const { settling, said, again } = open();
  for (const sequence of [1, 2]) settling.finish(answerable(sequence));
  settling.sayAgain(1);
  expect(again).toEqual([2]);
  // Others have swept: 1 and 2 may be in other clients' hands.
  settling.drop();
  settling.finish(answerable(3));
  settling.sayAgain(0);
  expect(again).toEqual([2, 3]);
  expect(said).toEqual(["ack 1", "ack 2", "ack 3"]);
});
