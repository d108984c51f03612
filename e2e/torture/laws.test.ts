// The torture's judge on small histories made by hand: a right one passes, and each law is broken once by one that
// differs from it in one thing. A judge that cannot say "guilty" would make every torture run green.
import { describe, expect, it } from "vitest";
import { type Delivery, emptyHistory, type Fault, type History, type Operation, type Publish } from "./history.ts";
import { check, explain } from "./laws/check.ts";
import { keyMatches, LATE } from "./laws/spans.ts";

const RIGHT = { message: "m1", queue: "q" };

function publish(more: Partial<Publish> = {}): Publish {
  return {
    id: "m1",
    channel: "p/0",
    place: 1,
    exchange: "x",
    routingKey: "a",
    mandatory: false,
    gateway: 0,
    sent: 1_000,
    answered: 1_010,
    outcome: "acked",
    ...more,
  };
}

function delivery(more: Partial<Delivery> = {}): Delivery {
  return {
    id: "m1",
    queue: "q",
    exchange: "x",
    routingKey: "a",
    redelivered: false,
    gateway: 1,
    consumer: "c/0",
    consumerSent: 900,
    at: 1_020,
    settlement: "ack",
    settledAt: 1_030,
    syncedAt: 1_040,
    ...more,
  };
}

function operation(kind: Operation["kind"], sent: number, answered: number, more: Partial<Operation> = {}): Operation {
  const [queue, exchange] = [kind.includes("exchange") ? "" : "q", kind === "declare" ? "" : "x"];
  return { kind, queue, exchange, key: "a", gateway: 0, sent, answered, outcome: "ok", ...more };
}

function unknown(kind: Operation["kind"], sent: number): Operation {
  const { answered: _, ...rest } = operation(kind, sent, 0);
  return { ...rest, outcome: "unknown" };
}

/** Exchange, queue and binding stand; one message is published, delivered and acknowledged; the queue is drained. */
function right(): History {
  const history = emptyHistory({ x: "direct" });
  history.operations.push(
    operation("declare-exchange", 100, 110),
    operation("declare", 200, 210),
    operation("bind", 300, 310),
  );
  history.publishes.push(publish());
  history.deliveries.push(delivery());
  history.drained.add("q");
  history.leftovers = { messages: 0, consumers: [], keys: [], leases: 3, live: 3 };
  return history;
}

function laws(history: History): string[] {
  return check(history).map(({ law }) => law);
}

function wrong(change: (history: History) => void): string[] {
  const history = right();
  change(history);
  return laws(history);
}

const fault = (kind: Fault["kind"], target: number, from: number, until: number): Fault => ({
  kind,
  target,
  from,
  until,
});

describe("the judge", () => {
  it("finds nothing in a right history", () => {
    expect(check(right())).toEqual([]);
  });

  it("tells the events of a breach in their order", () => {
    const lines = explain(right(), { law: "", text: "", ...RIGHT });
    expect(lines.map((line) => line.split(" ").slice(1, 3).join(" "))).toEqual([
      "declare q",
      "bind q",
      "published m1",
      "delivered to",
    ]);
  });
});

describe("confirmed is delivered", () => {
  const law = "confirmed is delivered";

  it("is broken by a message that never came", () => {
    expect(wrong((history) => history.deliveries.pop())).toEqual([law]);
  });

  it.each([
    ["was not confirmed", (history: History) => history.publishes.splice(0, 1, publish({ outcome: "nacked" }))],
    [
      "was published while the bind was not answered",
      (history) => history.publishes.splice(0, 1, publish({ sent: 309 })),
    ],
    ["was confirmed after an unbind was sent", (history) => history.operations.push(operation("unbind", 1_009, 1_500))],
    ["matches no binding", (history) => history.publishes.splice(0, 1, publish({ routingKey: "b" }))],
    ["may have gone with the queue", (history) => history.operations.push(operation("delete", 1_100, 1_110))],
    [
      "may have gone with a queue of which nothing is known",
      (history) => history.operations.push(unknown("delete", 400)),
    ],
    ["is in a queue that was not drained", (history) => history.drained.clear()],
  ] as const)("is not broken where it %s", (_, change: (history: History) => unknown) => {
    expect(
      wrong((history) => {
        history.deliveries.pop();
        change(history);
      }),
    ).toEqual([]);
  });
});

describe("never in a queue that was not bound", () => {
  const law = "never in a queue that was not bound";
  const late = (history: History): void => {
    history.publishes.splice(0, 1, publish({ sent: 2_000, answered: 2_010 }));
    history.deliveries.splice(0, 1, delivery({ at: 2_020, settledAt: 2_030, syncedAt: 2_040 }));
  };

  it("is broken by a message of before the bind", () => {
    expect(wrong((history) => history.publishes.splice(0, 1, publish({ sent: 290, answered: 299 })))).toEqual([law]);
  });

  it("is broken by a message of after the unbind, and of after the exchange's deletion", () => {
    for (const kind of ["unbind", "delete-exchange"] as const) {
      expect(
        wrong((history) => {
          late(history);
          history.operations.push(operation(kind, 1_800, 1_900));
        }),
      ).toEqual([law]);
    }
  });

  it("is not broken while the unbind is not answered, or where its outcome is not known", () => {
    for (const unbind of [operation("unbind", 1_800, 2_001), unknown("unbind", 1_800)]) {
      expect(
        wrong((history) => {
          late(history);
          history.operations.push(unbind);
        }),
      ).toEqual([]);
    }
  });

  it("is not broken by a bind of which nothing is known, for as long as it may still come", () => {
    const change = (unbound: number) => (history: History) => {
      late(history);
      history.operations.splice(2, 1, unknown("bind", 300));
      history.operations.push(operation("unbind", unbound, unbound + 10));
    };
    expect(wrong(change(1_000))).toEqual([]);
    expect(LATE).toBeGreaterThan(30_000);
  });

  it("is broken by another key", () => {
    expect(
      wrong((history) => {
        history.publishes.splice(0, 1, publish({ routingKey: "b" }));
        history.deliveries.splice(0, 1, delivery({ routingKey: "b" }));
      }),
    ).toEqual([law]);
  });
});

describe("delivered as published", () => {
  it("is broken by a message that nobody published, and by one under another address", () => {
    const law = ["delivered as published"];
    expect(wrong((history) => history.deliveries.push(delivery({ id: "m2" })))).toEqual(law);
    expect(wrong((history) => history.deliveries.splice(0, 1, delivery({ routingKey: "b" })))).toEqual(law);
  });
});

describe("a deleted queue is empty when it is declared again", () => {
  const again = (consumerSent: number) => (history: History) => {
    history.operations.push(operation("delete", 1_100, 1_110), operation("declare", 1_200, 1_210));
    history.deliveries.splice(0, 1, delivery({ consumerSent, at: 1_300, settledAt: 1_310, syncedAt: 1_320 }));
  };

  it("is broken by a message of before the deletion to a consumer of after it", () => {
    expect(wrong(again(1_250))).toEqual(["a deleted queue is empty when it is declared again"]);
  });

  it("is not broken where the consumer began before", () => {
    expect(wrong(again(1_105))).toEqual([]);
  });
});

describe("basic.return", () => {
  const returned = { mandatory: true, returned: 1_005 };

  it("is a lie while something is bound, and for what is delivered", () => {
    expect(wrong((history) => history.publishes.splice(0, 1, publish(returned)))).toEqual([
      "returned is unroutable",
      "returned is not stored",
    ]);
  });

  it("is owed for what is mandatory while nothing is bound", () => {
    const change = (more: Partial<Publish>) => (history: History) => {
      history.publishes.splice(0, 1, publish({ routingKey: "b", mandatory: true, ...more }));
      history.deliveries.pop();
    };
    expect(wrong(change({}))).toEqual(["unroutable is returned"]);
    expect(wrong(change(returned))).toEqual([]);
    expect(wrong(change({ mandatory: false }))).toEqual([]);
  });
});

describe("what stands is found", () => {
  const refused = (sent: number): Operation =>
    operation("bind", sent, sent + 10, { outcome: "refused", code: 404, text: "NOT_FOUND" });

  it("is broken by a 404 for a queue and an exchange that certainly stood", () => {
    expect(wrong((history) => history.operations.push(refused(500)))).toEqual(["what stands is found"]);
  });

  it("is not broken where one of them may have been gone", () => {
    for (const kind of ["delete", "delete-exchange"] as const) {
      expect(
        wrong((history) => {
          history.operations.push(refused(1_505), operation(kind, 1_500, 1_600));
        }),
      ).toEqual([]);
    }
    expect(wrong((history) => history.operations.push(refused(150)))).toEqual([]);
  });
});

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
    ["nobody made sure", (history) => history.deliveries.splice(0, 1, { ...delivery(), syncedAt: Infinity })],
    ["the bus was killed within a second", (history) => history.faults.push(fault("bus-kill", -1, 1_900, 2_500))],
    ["its gateway was stopped meanwhile", (history) => history.faults.push(fault("gateway-stop", 1, 1_021, 1_025))],
    ["its gateway's lease lapsed", (history) => history.faults.push(fault("lease-lapsed", 1, 1_035, 1_035))],
    [
      "somebody else had been given it",
      (history) => history.deliveries.push(delivery({ at: 1_025, redelivered: true, settlement: "requeue" })),
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

it("what an actor complains of is a breach", () => {
  expect(wrong((history) => history.complaints.push({ at: 0, text: "no answer" }))).toEqual(["actors"]);
});

it.each([
  ["a.*", "a.b", true],
  ["a.*", "a.b.c", false],
  ["a.*", "a", false],
  ["#", "", true],
  ["#", "a.b.c", true],
  ["a.#", "a", true],
  ["a.#", "a.b.c", true],
  ["a.#", "b.a", false],
  ["*.b", "a.b", true],
  ["a.b", "a.b", true],
] as const)("topic %s and %s: %s", (bound, published, matches) => {
  expect(keyMatches("topic", bound, published)).toBe(matches);
});
