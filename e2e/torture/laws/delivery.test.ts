// The torture's judge on histories made by hand: a right one passes, and each law of where messages go is broken once by
// one that differs from it in one thing. A judge that cannot say "guilty" would make every torture run green.
import { describe, expect, it } from "vitest";
import type { History, Operation, Publish } from "../history.ts";
import { check, explain } from "./check.ts";
import { delivery, operation, publish, RIGHT, right, unknown, wrong } from "./made.ts";
import { keyMatches, LATE } from "./spans.ts";

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
      (history: History) => history.publishes.splice(0, 1, publish({ sent: 309 })),
    ],
    [
      "was confirmed after an unbind was sent",
      (history: History) => history.operations.push(operation("unbind", 1_009, 1_500)),
    ],
    ["matches no binding", (history: History) => history.publishes.splice(0, 1, publish({ routingKey: "b" }))],
    ["may have gone with the queue", (history: History) => history.operations.push(operation("delete", 1_100, 1_110))],
    [
      "may have gone with a queue of which nothing is known",
      (history: History) => history.operations.push(unknown("delete", 400)),
    ],
    ["is in a queue that was not drained", (history: History) => history.drained.clear()],
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
