// The torture's judge on histories made by hand, as in delivery.test.ts: exclusive queues, who may use them, and when they
// must be gone.
import { describe, expect, it } from "vitest";
import type { Fault, History, Operation } from "../history.ts";
import { fault, operation, ownership, wrong } from "./made.ts";

const OWNERS = "an exclusive queue is its owner's";
const GOES = "an exclusive queue goes with its owner";
const SERVES = "an exclusive queue serves its owner";

function asked(sent: number, more: Partial<Operation>): Operation {
  return operation("passive", sent, sent + 10, { queue: "own", exchange: "", key: "", asker: "stranger", ...more });
}

const locked = { outcome: "refused", code: 405, text: "locked" } as const;
const unfound = { outcome: "refused", code: 404, text: "not found" } as const;

function judged(operations: readonly Operation[], ...faults: readonly Fault[]): string[] {
  return wrong((history: History) => {
    history.ownerships.push(ownership());
    history.operations.push(
      operation("declare", 1_000, 1_010, { queue: "own", key: "", asker: "o/0" }),
      asked(5_000, locked),
      ...operations,
    );
    history.faults.push(...faults);
  });
}

describe("while the owner's connection lives", () => {
  it("a stranger is locked out, and the owner is served", () => {
    expect(judged([])).toEqual([]);
    expect(judged([asked(6_000, { asker: "o/0" })])).toEqual([]);
  });

  it("it is broken by whatever else a stranger is told", () => {
    for (const said of [unfound, { outcome: "ok" }] as const) expect(judged([asked(6_000, said)])).toContain(OWNERS);
    expect(judged([asked(6_000, { kind: "declare" })])).toEqual([OWNERS]);
  });

  it("it is broken by what is refused to the owner", () => {
    for (const said of [locked, unfound]) expect(judged([asked(6_000, { asker: "o/0", ...said })])).toContain(SERVES);
  });

  it("it may be gone once its gateway lost its lease, was stopped or killed, but is nobody else's", () => {
    for (const kind of ["gateway-stop", "gateway-kill", "lease-lapsed"] as const) {
      const trouble = fault(kind, 1, 5_500, 5_600);
      expect(judged([asked(6_000, unfound)], trouble)).toEqual([]);
      expect(judged([asked(6_000, { kind: "declare", asker: "o/1" })], trouble)).toEqual([]);
      expect(judged([asked(6_000, {})], trouble)).toEqual([OWNERS]);
    }
    // Not for what befell others.
    for (const other of [fault("gateway-stop", 0, 5_500, 5_600), fault("bus-kill", -1, 5_500, 5_600)])
      expect(judged([asked(6_000, unfound)], other)).toContain(OWNERS);
  });
});

describe("when the owner's connection has ended", () => {
  it("it is gone within a second", () => {
    expect(judged([asked(21_009, locked)])).toEqual([]);
    expect(judged([asked(21_011, locked)])).toEqual([GOES]);
    expect(judged([asked(21_011, unfound)])).toEqual([]);
  });

  it("it is gone within 15 s where a gateway died, later only by what the bus was away", () => {
    const died = fault("gateway-kill", 1, 20_000, 22_000);
    expect(judged([asked(35_009, locked)], died)).toEqual([]);
    expect(judged([asked(35_011, locked)], died)).toEqual([GOES]);
    const away = fault("bus-kill", -1, 25_000, 30_000);
    expect(judged([asked(44_999, locked)], died, away)).toEqual([]);
    expect(judged([asked(45_001, locked)], died, away)).toEqual([GOES]);
  });

  it("it may be locked by who has declared it since, and is nobody's who did not", () => {
    const next = (history: History) =>
      history.ownerships.push(
        ownership({ owner: "o/1", sent: 22_000, answered: 22_010, until: 90_000, ended: 90_000 }),
      );
    const declared = operation("declare", 22_000, 22_010, { queue: "own", key: "", asker: "o/1" });
    expect(
      wrong((history) => {
        history.ownerships.push(ownership());
        next(history);
        history.operations.push(declared, asked(23_000, locked));
      }),
    ).toEqual([]);
    expect(judged([asked(23_000, { kind: "bind" })])).toContain(OWNERS);
    expect(judged([asked(23_000, { kind: "delete" })])).toEqual([]);
  });
});

it("what was in it goes with it", () => {
  const again = (gone: number) => (history: History) => {
    history.ownerships.push(ownership({ queue: "q", sent: 200, answered: 210, until: 1_100, ended: 1_110, gone }));
    history.operations.push(operation("declare", 1_200, 1_210));
    const [first] = history.deliveries;
    if (first !== undefined) history.deliveries.splice(0, 1, { ...first, consumerSent: 1_250, at: 1_300 });
  };
  expect(wrong(again(1_190))).toContain("a deleted queue is empty when it is declared again");
  expect(wrong(again(1_260))).toEqual([]);
});
