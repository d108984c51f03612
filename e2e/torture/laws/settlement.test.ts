// The torture's judge on histories made by hand, as in delivery.test.ts: the laws of what happens after a delivery.
import { describe, expect, it } from "vitest";
import type { Delivery, History } from "../history.ts";
import { delivery, fault, publish, wrong } from "./made.ts";

describe("settled is not delivered again", () => {
  const law = "settled is not delivered again";
  const again = delivery({ at: 5_000, redelivered: true, settledAt: 5_010, syncedAt: 5_020 });

  it("is broken by a delivery after the bus has surely processed an ack or a discard", () => {
    expect(wrong((history) => history.deliveries.push(again))).toEqual([law]);
    expect(wrong((history) => history.deliveries.splice(0, 1, delivery({ settlement: "discard" }), again))).toEqual([
      law,
    ]);
  });

  it.each([
    ["it was requeued", (history: History) => history.deliveries.splice(0, 1, delivery({ settlement: "requeue" }))],
    ["nobody made sure", (history: History) => history.deliveries.splice(0, 1, { ...delivery(), syncedAt: Infinity })],
    [
      "the bus was killed within a second",
      (history: History) => history.faults.push(fault("bus-kill", -1, 1_900, 2_500)),
    ],
    [
      "its gateway was stopped meanwhile",
      (history: History) => history.faults.push(fault("gateway-stop", 1, 1_021, 1_025)),
    ],
    ["its gateway's lease lapsed", (history: History) => history.faults.push(fault("lease-lapsed", 1, 1_035, 1_035))],
    [
      "somebody else had been given it",
      (history: History) => history.deliveries.push(delivery({ at: 1_025, redelivered: true, settlement: "requeue" })),
    ],
  ] as const)("is not broken where %s", (_, change: (history: History) => unknown) => {
    expect(
      wrong((history) => {
        change(history);
        history.deliveries.push({ ...again, settledAt: 5_010 });
        history.deliveries.sort((a, b) => a.at - b.at);
      }),
    ).toEqual([]);
  });

  it("is broken where the fault was another gateway's, or the bus was killed later", () => {
    for (const other of [fault("gateway-stop", 0, 1_021, 1_025), fault("bus-kill", -1, 2_100, 2_500)]) {
      expect(
        wrong((history) => {
          history.faults.push(other);
          history.deliveries.push(again);
        }),
      ).toEqual([law]);
    }
  });
});

describe("a second delivery is flagged", () => {
  const first = delivery({ settlement: "requeue" });
  const law = "a second delivery is flagged";

  it("is broken by two that are not", () => {
    expect(wrong((history) => history.deliveries.splice(0, 1, first, delivery({ at: 1_500 })))).toEqual([law]);
  });

  it("is broken by an unflagged one after a flagged one", () => {
    const flagged = delivery({ settlement: "requeue", redelivered: true });
    expect(wrong((history) => history.deliveries.splice(0, 1, flagged, delivery({ at: 2_500 })))).toEqual([law]);
  });

  it("is not broken by a flagged one, even where nobody saw the first", () => {
    const flagged = delivery({ redelivered: true });
    expect(wrong((history) => history.deliveries.splice(0, 1, first, { ...flagged, at: 1_500 }))).toEqual([]);
    expect(wrong((history) => history.deliveries.splice(0, 1, flagged))).toEqual([]);
  });
});

describe("order of one publisher and one consumer", () => {
  const law = "order of one publisher and one consumer";
  const two =
    (more: Partial<Delivery>, channel = "p/0") =>
    (history: History) => {
      history.publishes.push(publish({ id: "m2", place: 2, channel, sent: 1_001, answered: 1_011 }));
      history.deliveries.unshift(delivery({ id: "m2", at: 1_015, ...more }));
    };

  it("is broken by a later one that comes first", () => {
    expect(wrong(two({}))).toEqual([law]);
  });

  it("says nothing of other consumers and other channels, nor of redeliveries", () => {
    expect(wrong(two({ consumer: "c/1" }))).toEqual([]);
    expect(wrong(two({}, "p/1"))).toEqual([]);
    expect(
      wrong((history) => {
        two({})(history);
        history.deliveries.splice(1, 1, delivery({ redelivered: true }));
      }),
    ).toEqual([]);
  });
});

describe("nothing is left", () => {
  it.each([
    ["messages", { messages: 1 }],
    ["consumers", { consumers: ["q"] }],
    ["keys", { keys: ["q.q"] }],
    ["leases", { leases: 4 }],
  ] as const)("is broken by %s", (_, more) => {
    expect(
      wrong((history) => {
        history.leftovers = { messages: 0, consumers: [], keys: [], leases: 3, live: 3, ...more };
      }),
    ).toEqual(["nothing is left"]);
  });
});
