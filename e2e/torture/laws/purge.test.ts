// The torture's judge on histories made by hand, as in delivery.test.ts: what a purge must take, may take and must spare.
import { describe, expect, it } from "vitest";
import type { History } from "../history.ts";
import { delivery, fault, life, operation, publish, purge, wrong } from "./made.ts";

const LOST = "confirmed is delivered";

describe("purged does not come", () => {
  const law = "purged does not come";
  const late = delivery({ at: 9_000, consumerSent: 8_000, settledAt: 9_010, syncedAt: 9_020 });
  const came =
    (change: (history: History) => unknown = () => undefined) =>
    (history: History): void => {
      history.deliveries.splice(0, 1, late);
      history.operations.push(purge(5_000, 5_100, 1));
      history.lives.push(life({ from: 8_000, leaving: 10_000, ended: 10_010 }));
      change(history);
    };

  it("is broken by what was confirmed and ready before", () => {
    expect(wrong(came())).toEqual([law]);
  });

  it("is broken where the last who could hold it has long put it back", () => {
    expect(wrong(came((history) => history.lives.push(life())))).toEqual([law]);
  });

  it.each([
    ["was not confirmed before", (history: History) => history.publishes.splice(0, 1, publish({ answered: 5_001 }))],
    ["may have been in a client's hands", (history: History) => history.lives.push(life({ ended: 5_000 }))],
    ["may have been on its way to one", (history: History) => history.lives.push(life({ from: 5_050, ended: 5_090 }))],
    [
      "may have been on its way back from a connection that was lost",
      (history: History) => history.lives.push(life({ inOrder: false })),
    ],
    [
      "may have been on its way back from a gateway that was killed",
      (history: History) => {
        history.lives.push(life());
        history.faults.push(fault("gateway-kill", 1, 1_500, 2_000));
      },
    ],
    ["may have been in another purge's hands", (history: History) => history.operations.push(purge(4_950, 5_050, 0))],
    [
      "comes while the purge is not answered",
      (history: History) => history.deliveries.splice(0, 1, { ...late, at: 5_050 }),
    ],
    [
      "was taken, and the bus was killed before it had written that",
      (history: History) => history.faults.push(fault("bus-kill", -1, 6_000, 7_000)),
    ],
  ] as const)("is not broken by what %s", (_, change: (history: History) => unknown) => {
    expect(wrong(came(change)).filter((each) => each === law)).toEqual([]);
  });

  it("is not broken where the bus had restarted and what was held may not be ready yet, unless nobody ever had it", () => {
    const restarted = fault("bus-kill", -1, 2_500, 3_000);
    expect(wrong(came((history) => history.faults.push(restarted)))).toEqual([law]);
    expect(
      wrong(
        came((history) => {
          history.faults.push(restarted);
          history.lives.push(life());
        }),
      ),
    ).toEqual([]);
  });
});

describe("a purge explains a message that never came", () => {
  const never = (change: (history: History) => unknown): string[] =>
    wrong((history) => {
      history.deliveries.pop();
      change(history);
    });

  it("that was published before it was answered", () => {
    for (const sent of [5_000, 1_005])
      expect(never((history) => history.operations.push(purge(sent, sent + 100, 1)))).toEqual([]);
  });

  it("and not one that was published after purge-ok", () => {
    expect(never((history) => history.operations.push(purge(900, 999, 1)))).toEqual([LOST]);
  });

  it("and not where it was refused, or of another queue", () => {
    expect(never((history) => history.operations.push({ ...purge(5_000, 5_100, 1), outcome: "refused" }))).toEqual([
      LOST,
    ]);
    expect(never((history) => history.operations.push({ ...purge(5_000, 5_100, 1), queue: "r" }))).toEqual([LOST]);
  });

  it("also where its answer is not known, for as long as it may still come", () => {
    const { answered: _, ...unknown } = purge(900, 0, 1);
    expect(never((history) => history.operations.push({ ...unknown, outcome: "unknown" }))).toEqual([]);
  });

  it("but not more of them than it says it took", () => {
    const law = "a purge says what it took";
    expect(never((history) => history.operations.push(purge(5_000, 5_100, 0)))).toEqual([law]);
    // Either of two may have taken it, unless the first must have.
    const two = (first: number) => (history: History) =>
      history.operations.push(purge(first, first + 100, 0), purge(5_000, 5_100, 1));
    expect(never(two(1_005))).toEqual([]);
    expect(never(two(3_000))).toEqual([law]);
  });
});

describe("handed back comes again", () => {
  const law = "handed back comes again";
  const held = (change: (history: History) => unknown, more: object = { settlement: "requeue" }): string[] =>
    wrong((history) => {
      const { settlement: _, settledAt: __, syncedAt: ___, ...bare } = delivery();
      history.deliveries.splice(0, 1, { ...bare, ...more });
      history.lives.push(life({ leaving: 6_000, ended: 6_010 }));
      change(history);
    });
  const nothing = (): void => undefined;

  it("is broken by what was requeued, and by what was held when its client left, and never came again", () => {
    expect(held(nothing, { settlement: "requeue", settledAt: 2_000 })).toEqual([law]);
    expect(held(nothing, {})).toEqual([law]);
  });

  it("is broken also where it was stored while its binding was being undone", () => {
    expect(held((history) => history.operations.push(operation("unbind", 1_005, 1_500)), {})).toEqual([law]);
  });

  it("is broken where a purge took it out of a client's hands", () => {
    expect(held((history) => history.operations.push(purge(3_000, 3_100, 0)), {})).toEqual([law]);
  });

  it.each([
    ["a purge came later", (history: History) => history.operations.push(purge(6_500, 6_600, 1))],
    [
      "a purge came when its gateway may have lost it",
      (history: History) => {
        history.faults.push(fault("gateway-stop", 1, 2_000, 2_500));
        history.operations.push(purge(3_000, 3_100, 1));
      },
    ],
    ["its queue was deleted", (history: History) => history.operations.push(operation("delete", 7_000, 7_010))],
    ["its queue was not drained", (history: History) => history.drained.clear()],
    [
      "it may have been sent to somebody who acknowledges nothing and is lost",
      (history: History) => history.lives.push(life({ noAck: true, inOrder: false, from: 7_000, ended: 8_000 })),
    ],
    [
      "somebody had it again and settled it",
      (history: History) =>
        history.deliveries.push(delivery({ at: 9_000, redelivered: true, settledAt: 9_010, syncedAt: 9_020 })),
    ],
  ] as const)("is not broken where %s", (_, change: (history: History) => unknown) => {
    expect(held(change, {})).toEqual([]);
  });
});
