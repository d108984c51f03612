/** The laws of the sieve, whatever the topology says and when: pure but for time. */
import { setImmediate as turn } from "node:timers/promises";
import type { Topology } from "@amqp/topology";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Incoming } from "../../src/core/bus.ts";
import type { Pull } from "../../src/core/pulling.ts";
import { Sieve } from "../../src/core/sieve.ts";

type Verdict = "inside" | "outside" | "undecided";

/** What a topology knows of each message, and what it will know once it was asked. */
class Oracle {
  readonly known = new Map<number, Verdict>();
  readonly true = new Map<number, Verdict>();
  isSilent = false;
  fences = 0;

  holds(_queue: string, _subject: string, sequence: number): boolean {
    return this.known.get(sequence) === "inside";
  }

  isUndecided(_queue: string, _subject: string, sequence: number): boolean {
    return this.known.get(sequence) === "undecided";
  }

  async fence(): Promise<void> {
    this.fences++;
    const seen = new Map(this.true);
    await turn();
    if (this.isSilent) throw new Error("the bus did not answer");
    for (const [sequence, verdict] of seen) this.known.set(sequence, verdict);
  }

  /** A write that everybody hears of. */
  tell(sequence: number, verdict: Verdict): void {
    this.true.set(sequence, verdict);
    this.known.set(sequence, verdict);
  }
}

function open() {
  const oracle = new Oracle();
  const given: { readonly sequence: number; readonly as: Verdict }[] = [];
  const sink = (as: Verdict) => (message: Incoming) => given.push({ sequence: message.sequence, as });
  const sieve = new Sieve("q", oracle as unknown as Topology, {
    inside: sink("inside"),
    outside: sink("outside"),
    undecided: sink("undecided"),
  });
  const message = (sequence: number): Incoming => ({ sequence, subject: "amqp.x.k" }) as Incoming;
  const pass = (sequence: number): void => sieve.pass(message(sequence), {} as Pull);
  return { oracle, sieve, given, pass, message };
}

const verdict = fc.constantFrom<Verdict>("inside", "inside", "outside", "undecided");

describe("Sieve", () => {
  it("law: each message leaves once, in order, as what it truly is; undecided only for who cannot wait", async () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ do: fc.constant("pass" as const), verdict, isLate: fc.boolean() }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("decide" as const), which: fc.nat(5), isIn: fc.boolean() }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("hurry" as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, mayHurry) => {
        const { oracle, sieve, given, pass } = open();
        let sequence = 0;
        const undecided: number[] = [];
        const decide = (which: number, isIn: boolean): void => {
          const [decided] = undecided.splice(which % Math.max(1, undecided.length), 1);
          if (decided === undefined) return;
          oracle.tell(decided, isIn ? "inside" : "outside");
          sieve.changed();
        };
        for (const each of steps) {
          if (each.do === "pass") {
            sequence++;
            oracle.true.set(sequence, each.verdict);
            if (!each.isLate) oracle.known.set(sequence, each.verdict);
            if (each.verdict === "undecided") undecided.push(sequence);
            pass(sequence);
          } else if (each.do === "decide") decide(each.which, each.isIn);
          else if (each.do === "wait") for (let turns = 0; turns < 3; turns++) await turn();
          else if (mayHurry) await sieve.empty();
          // Nothing passes by what is not decided.
          if (!mayHurry) expect(given.filter(({ as }) => as === "undecided")).toEqual([]);
          for (const { sequence: gone, as } of given)
            if (as !== "undecided" && undecided.includes(gone)) expect.fail(`${gone} was ${as} before that was known`);
        }
        while (undecided.length > 0) decide(0, true);
        await sieve.empty();
        expect(given.map((each) => each.sequence)).toEqual(Array.from({ length: sequence }, (_, n) => n + 1));
        for (const { sequence: gone, as } of given) if (as !== "undecided") expect(as).toBe(oracle.true.get(gone));
        expect(sieve.waiting).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  it("does not wait for what cannot be asked", async () => {
    const { oracle, sieve, given, pass } = open();
    oracle.tell(1, "undecided");
    oracle.tell(2, "inside");
    pass(1);
    pass(2);
    for (let turns = 0; turns < 5; turns++) await turn();
    expect(given).toEqual([]);
    oracle.isSilent = true;
    sieve.changed();
    await sieve.empty();
    expect(given).toEqual([
      { sequence: 1, as: "undecided" },
      { sequence: 2, as: "inside" },
    ]);
  });

  it("asks nothing more of the topology while nothing changes", async () => {
    const { oracle, sieve, given, pass } = open();
    oracle.tell(1, "undecided");
    for (const sequence of [1, 2, 3]) pass(sequence);
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(oracle.fences).toBe(1);
    expect(sieve.waiting).toBe(3);
    for (const sequence of [2, 1, 3]) oracle.tell(sequence, "inside");
    sieve.changed();
    for (let turns = 0; turns < 5; turns++) await turn();
    expect(given.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  });

  it("tells whoever asks for one message when it is known", async () => {
    const { oracle, sieve, message } = open();
    oracle.tell(1, "undecided");
    let told: boolean | undefined;
    const asked = sieve.surelyHolds(message(1)).then((holds) => {
      told = holds;
    });
    for (let turns = 0; turns < 20; turns++) await turn();
    expect(told).toBeUndefined();
    oracle.tell(1, "outside");
    sieve.changed();
    await asked;
    expect(told).toBe(false);
    oracle.true.set(2, "inside");
    expect(await sieve.surelyHolds(message(2))).toBe(true);
  });

  it("does not keep who asks for one message waiting beyond its end", async () => {
    const { oracle, sieve, message } = open();
    oracle.tell(1, "undecided");
    const asked = sieve.surelyHolds(message(1));
    for (let turns = 0; turns < 20; turns++) await turn();
    sieve.end();
    expect(await asked).toBeUndefined();
    oracle.true.set(2, "inside");
    expect(await sieve.surelyHolds(message(2))).toBe(true);
  });
});
