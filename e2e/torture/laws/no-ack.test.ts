// The torture's judge on histories made by hand, as in delivery.test.ts: what may be lost with a consumer without
// acknowledgement, and what may not.
import { describe, expect, it } from "vitest";
import type { Delivery, History, Life } from "../history.ts";
import { delivery, fault, life, publish, wrong } from "./made.ts";

const LOST = "confirmed is delivered";
const hurried = (more: Partial<Life> = {}): Life => life({ noAck: true, inOrder: false, ...more });

describe("a message that never came", () => {
  const never = (change: (history: History) => unknown): string[] =>
    wrong((history) => {
      history.deliveries.pop();
      change(history);
    });

  it("may have gone with a consumer without acknowledgement whose connection was lost, or its basic.get", () => {
    expect(never((history) => history.lives.push(hurried()))).toEqual([]);
  });

  it.each([
    ["read all that it was sent", hurried({ inOrder: true })],
    ["acknowledges", hurried({ noAck: false })],
    ["was of another queue", hurried({ queue: "r" })],
    ["was gone before it was published", hurried({ from: -9_000, leaving: -8_010, ended: -8_000 })],
  ] as const)("has not gone with a consumer that %s", (_, one) => {
    expect(never((history) => history.lives.push(one))).toEqual([LOST]);
  });

  it("may have gone with one whose gateway was stopped, and could not notice", () => {
    const gone = hurried({ from: -9_000, leaving: -8_010, ended: -8_000 });
    const change = (gateway: number) => (history: History) => {
      history.lives.push(gone);
      history.faults.push(fault("gateway-stop", gateway, -8_500, 500));
    };
    expect(never(change(1))).toEqual([]);
    expect(never(change(0))).toEqual([LOST]);
  });

  it("has not gone with one that was given younger messages for so long that it would have been given this one", () => {
    const change = (at: number, redelivered: boolean) => (history: History) => {
      history.lives.push(hurried({ ended: 60_000, leaving: 60_000 }));
      for (const [place, came] of [
        [2, 1_100],
        [3, at],
      ] as const) {
        const id = `m${place}`;
        history.publishes.push(publish({ id, place, sent: 1_050, answered: 1_060 }));
        history.deliveries.push(sent({ id, at: came, settledAt: came, redelivered }));
      }
    };
    expect(never(change(31_100, false))).toEqual([LOST]);
    expect(never(change(31_099, false))).toEqual([]);
    // What comes again is older than what it comes after.
    expect(never(change(31_100, true))).toEqual([]);
  });
});

describe("what was sent without acknowledgement", () => {
  const law = "settled is not delivered again";
  const again = delivery({ at: 5_000, redelivered: true, settledAt: 5_010 });

  it("is settled once the bus has surely processed that", () => {
    expect(wrong((history) => history.deliveries.splice(0, 1, sent(), again))).toEqual([law]);
  });

  it("may come again, flagged, where its gateway died before, or nobody made sure", () => {
    const { syncedAt: _, ...unsure } = sent();
    expect(wrong((history) => history.deliveries.splice(0, 1, unsure, again))).toEqual([]);
    expect(
      wrong((history) => {
        history.faults.push(fault("gateway-kill", 1, 1_030, 2_000));
        history.deliveries.splice(0, 1, sent(), again);
      }),
    ).toEqual([]);
  });

  it("never comes again without the flag", () => {
    const unflagged = sent({ at: 5_000, consumer: "c/1", redelivered: false });
    const { syncedAt: _, ...unsure } = sent();
    expect(wrong((history) => history.deliveries.splice(0, 1, unsure, unflagged))).toEqual([
      "a second delivery is flagged",
    ]);
  });
});

function sent(more: Partial<Delivery> = {}): Delivery {
  return delivery({ settlement: "sent", settledAt: 1_020, ...more });
}
