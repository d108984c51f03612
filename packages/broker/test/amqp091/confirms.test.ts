// The ledger of publishes: whatever the order of the bus's answers, each confirm goes out once and in order.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Confirms } from "../../src/amqp091/confirms.ts";
import type { PublishOutcome } from "../../src/core/bus.ts";

function ledger(): { confirms: Confirms; said: [number, boolean][]; lost: PublishOutcome[]; denied: string[] } {
  const said: [number, boolean][] = [];
  const lost: PublishOutcome[] = [];
  const denied: string[] = [];
  const confirms = new Confirms({
    confirmed: (tag, stored) => said.push([tag, stored]),
    lost: (outcome) => lost.push(outcome),
    denied: (subject) => denied.push(subject),
  });
  return { confirms, said, lost, denied };
}

const outcome = fc.constantFrom<PublishOutcome | "returned">(
  "stored",
  "stored",
  "full",
  "refused",
  "unknown",
  "returned",
);

describe("Confirms", () => {
  it("law: each tag once, in order, acked exactly where it was stored or returned", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ outcome, delay: fc.nat(300) }), { maxLength: 300 }),
        fc.nat(20),
        (publishes, before) => {
          const { confirms, said, lost } = ledger();
          for (let i = 0; i < before; i++) confirms.published(confirms.open(), "stored");
          confirms.select();
          confirms.select();
          const opened = publishes.map((publish) => ({ ...publish, number: confirms.open() }));
          for (const { number, outcome } of opened.toSorted((a, b) => a.delay - b.delay)) {
            if (outcome === "returned") confirms.returned(number);
            else confirms.published(number, outcome);
            // Nothing is told before all that comes before it is known.
            expect(said.map(([tag]) => tag)).toEqual(said.map((_, i) => i + 1));
          }
          expect(said).toEqual(publishes.map((p, i) => [i + 1, p.outcome === "stored" || p.outcome === "returned"]));
          expect(confirms.outstanding).toBe(0);
          expect(lost).toEqual([]);
        },
      ),
    );
  });

  it("tells nobody outside of confirm mode, but what was lost", () => {
    const { confirms, said, lost } = ledger();
    confirms.published(confirms.open(), "stored");
    confirms.published(confirms.open(), "full");
    expect(said).toEqual([]);
    expect(lost).toEqual(["full"]);
  });

  it("answers what is outstanding as not stored when it is given up, and ignores the bus afterwards", () => {
    const { confirms, said } = ledger();
    confirms.select();
    const numbers = [confirms.open(), confirms.open(), confirms.open()];
    confirms.published(numbers[1] as number, "stored");
    confirms.abandon();
    expect(said).toEqual([
      [1, false],
      [2, true],
      [3, false],
    ]);
    confirms.published(numbers[0] as number, "stored");
    expect(said).toHaveLength(3);
    confirms.published(confirms.open(), "stored");
    expect(said.at(-1)).toEqual([4, true]);
  });

  it("resolves a wait when all publishes before it are known, and not later ones", async () => {
    const { confirms } = ledger();
    expect(confirms.settled()).toBeUndefined();
    const first = confirms.open();
    const second = confirms.open();
    let settled = false;
    const wait = confirms.settled()?.then(() => {
      settled = true;
    });
    confirms.open();
    confirms.published(second, "stored");
    await Promise.resolve();
    expect(settled).toBe(false);
    confirms.published(first, "unknown");
    await wait;
    expect(settled).toBe(true);
    expect(confirms.outstanding).toBe(1);
  });

  it("what the bus does not permit is nacked, in its turn, and told with its subject", () => {
    const { confirms, said, lost, denied } = ledger();
    confirms.select();
    const [first, second] = [confirms.open(), confirms.open()];
    confirms.published(second, "denied", "amqp.x.k");
    expect(said).toEqual([]);
    expect(denied).toEqual(["amqp.x.k"]);
    confirms.published(first, "stored");
    expect(said).toEqual([
      [1, true],
      [2, false],
    ]);
    expect(lost).toEqual([]);
  });
});
