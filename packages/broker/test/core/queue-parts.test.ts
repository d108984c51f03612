/** The laws of the queue's pure parts: whose turn it is, when to ask, what is flagged, where bindings hold. */
import { matches } from "@amqp/translator";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AskPolicy, MOST_OUTSTANDING } from "../../src/core/ask-policy.ts";
import { type FilterInterval, segmentsAbove } from "../../src/core/interval-segments.ts";
import { Redelivery } from "../../src/core/redelivery.ts";
import { RoundRobin } from "../../src/core/round-robin.ts";

interface Taker {
  readonly id: number;
  room: number;
  readonly wanted: number;
}

describe("RoundRobin", () => {
  it("deals to all in turn while all have room", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 5 }), (count, rounds) => {
        const ring = new RoundRobin<Taker>();
        for (let id = 0; id < count; id++) ring.add({ id, room: 1_000, wanted: 1_000 });
        for (let round = 0; round < rounds; round++) {
          expect(Array.from({ length: count }, () => ring.next()?.id).sort((a = 0, b = 0) => a - b)).toEqual(
            Array.from({ length: count }, (_, id) => id),
          );
        }
      }),
    );
  });

  it("never deals to who has no room or has left, and always to somebody while anybody has room", () => {
    const step = fc.record({
      what: fc.constantFrom("add", "remove", "grant", "reduce", "next", "next", "next"),
      who: fc.nat(9),
      room: fc.integer({ min: 1, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const ring = new RoundRobin<Taker>();
        const members = new Map<number, Taker>();
        for (const { what, who, room } of steps) {
          const member = members.get(who);
          if (what === "add" && member === undefined) {
            const added = {
              id: who,
              room,
              get wanted(): number {
                return this.room;
              },
            };
            members.set(who, added);
            ring.add(added);
          } else if (what === "remove" && member !== undefined) {
            members.delete(who);
            ring.remove(member);
          } else if (what === "grant" && member !== undefined) {
            member.room += room;
            ring.wake(member);
          } else if (what === "reduce" && member !== undefined) {
            member.room -= room;
          } else if (what === "next") {
            const next = ring.next();
            const anybody = [...members.values()].some((each) => each.room > 0);
            expect(next !== undefined).toBe(anybody);
            if (next === undefined) continue;
            expect(members.get(next.id)).toBe(next);
            expect(next.room).toBeGreaterThan(0);
            next.room--;
          }
          expect(ring.size).toBe(members.size);
          expect(new Set(ring)).toEqual(new Set(members.values()));
          expect(ring.wanted).toBe([...members.values()].reduce((sum, each) => sum + Math.max(0, each.room), 0));
        }
      }),
    );
  });

  it("lets nobody wait for more than one turn of each other member", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 8 }), (rooms) => {
        const ring = new RoundRobin<Taker>();
        const members = rooms.map((room, id) => ({ id, room, wanted: room }));
        for (const member of members) ring.add(member);
        const since = members.map(() => 0);
        for (let turn = 0; turn < 100; turn++) {
          const next = ring.next();
          if (next === undefined) break;
          for (const member of members) {
            if (member === next || member.room <= 0) since[member.id] = 0;
            else since[member.id] = (since[member.id] ?? 0) + 1;
            expect(since[member.id]).toBeLessThan(members.length);
          }
          next.room--;
          if (next.room === 0 && turn % 3 === 0) {
            next.room = 2;
            ring.wake(next);
          }
        }
      }),
    );
  });
});

describe("AskPolicy", () => {
  const room = fc.oneof(fc.integer({ min: -3, max: 20 }), fc.integer({ min: 0, max: 1_000_000 }));

  it("never asks for more than there is room, and never has more outstanding than its bound", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(room, fc.nat(50)), { maxLength: 50 }), (steps) => {
        const policy = new AskPolicy();
        let outstanding = 0;
        for (const [free, came] of steps) {
          outstanding -= Math.min(came, outstanding);
          const before = outstanding;
          outstanding += policy.more(free, outstanding);
          expect(outstanding).toBeLessThanOrEqual(Math.max(before, Math.min(free, MOST_OUTSTANDING)));
          expect(outstanding).toBeGreaterThanOrEqual(before);
        }
      }),
    );
  });

  it("lives: with room and nothing outstanding it asks for all of it", () => {
    fc.assert(
      fc.property(fc.array(room, { maxLength: 20 }), fc.integer({ min: 1, max: 5_000 }), (seen, free) => {
        const policy = new AskPolicy();
        for (const each of seen) policy.more(each, 0);
        expect(policy.more(free, 0)).toBe(Math.min(free, MOST_OUTSTANDING));
      }),
    );
  });

  it("batches: under load it asks at most twice for each largest room's worth of messages", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 500 }), (prefetch) => {
        const policy = new AskPolicy();
        let outstanding = policy.more(prefetch, 0);
        let asks = 0;
        const messages = prefetch * 20;
        // Each message comes, is acknowledged at once, and leaves the room as it was.
        for (let message = 0; message < messages; message++) {
          outstanding--;
          const more = policy.more(prefetch, outstanding);
          if (more > 0) asks++;
          outstanding += more;
        }
        expect(asks).toBeLessThanOrEqual(40);
      }),
    );
  });
});

describe("Redelivery", () => {
  it("flags the second attempt of what was written, and not of what was handed back", () => {
    const redelivery = new Redelivery(0);
    expect(redelivery.isRedelivered(7, 1)).toBe(false);
    redelivery.handedBack(7, 1);
    expect(redelivery.isRedelivered(7, 2)).toBe(false);
    redelivery.handedBack(7, 2);
    expect(redelivery.isRedelivered(7, 3)).toBe(false);
    redelivery.wrote(7);
    expect(redelivery.isRedelivered(7, 4)).toBe(true);
  });

  it("stays flagged when it is handed back after it was written", () => {
    const redelivery = new Redelivery(0);
    redelivery.wrote(7);
    redelivery.handedBack(7, 2);
    expect(redelivery.isRedelivered(7, 3)).toBe(true);
  });

  it("flags what somebody else had between handing back and coming again", () => {
    const redelivery = new Redelivery(0);
    redelivery.handedBack(7, 1);
    expect(redelivery.isRedelivered(7, 3)).toBe(true);
  });

  it("flags after a restart of the bus whatever is not above the highest that was written", () => {
    const redelivery = new Redelivery(3);
    redelivery.handedBack(9, 1);
    redelivery.wrote(8);
    expect(redelivery.isRedelivered(3, 1)).toBe(true);
    expect(redelivery.isRedelivered(4, 1)).toBe(false);
    redelivery.busRestarted();
    expect([4, 8, 9].map((sequence) => redelivery.isRedelivered(sequence, 1))).toEqual([true, true, false]);
    expect(redelivery.isRedelivered(9, 2)).toBe(false);
  });

  it("never leaves a written message unflagged, however much was handed back", () => {
    const event = fc.record({
      sequence: fc.integer({ min: 1, max: 6 }),
      what: fc.constantFrom("write", "hand back"),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const redelivery = new Redelivery(0);
        const attempts = new Map<number, number>();
        const written = new Set<number>();
        for (const { sequence, what } of events) {
          const attempt = (attempts.get(sequence) ?? 0) + 1;
          attempts.set(sequence, attempt);
          expect(redelivery.isRedelivered(sequence, attempt)).toBe(written.has(sequence));
          if (what === "hand back") redelivery.handedBack(sequence, attempt);
          else {
            redelivery.wrote(sequence);
            written.add(sequence);
          }
        }
      }),
    );
  });

  it("does not flag what strayed on its first attempt, and does once it was written", () => {
    const redelivery = new Redelivery(0);
    redelivery.wrote(12);
    redelivery.strayed(10, 20);
    expect([11, 12, 13, 20, 21].map((sequence) => redelivery.isRedelivered(sequence, 2))).toEqual([
      true,
      true,
      false,
      false,
      true,
    ]);
    redelivery.wrote(13);
    expect(redelivery.isRedelivered(13, 3)).toBe(true);
    redelivery.handedBack(14, 2);
    expect(redelivery.isRedelivered(14, 3)).toBe(false);
  });

  it("forgets the oldest beyond its bound, and then flags it", () => {
    const redelivery = new Redelivery(0);
    for (let sequence = 1; sequence <= 10_001; sequence++) redelivery.handedBack(sequence, 1);
    expect(redelivery.isRedelivered(1, 2)).toBe(true);
    expect(redelivery.isRedelivered(2, 2)).toBe(false);
  });
});

describe("segmentsAbove", () => {
  const subjects = ["amqp.t", "amqp.t.a", "amqp.t.b", "amqp.t.a.b"];
  const interval: fc.Arbitrary<FilterInterval> = fc.record({
    filters: fc.constantFrom(["amqp.t.a"], ["amqp.t", "amqp.t.>"], ["amqp.t.*"], ["amqp.t.a", "amqp.t.a.>"]),
    from: fc.nat(12),
    until: fc.option(fc.nat(12), { nil: undefined }),
  });

  it("holds a message in the segment of its sequence iff some interval holds it", () => {
    fc.assert(
      fc.property(fc.nat(12), fc.array(interval, { maxLength: 6 }), (start, intervals) => {
        const segments = segmentsAbove(start, intervals);
        for (let sequence = start + 1; sequence <= 15; sequence++) {
          const own = segments.filter(
            ({ above, until }) => sequence > above && (until === undefined || sequence <= until),
          );
          expect(own).toHaveLength(1);
          for (const subject of subjects) {
            const expected = intervals.some(
              ({ filters, from, until }) =>
                sequence > from &&
                (until === undefined || sequence <= until) &&
                filters.some((filter) => matches(filter, subject)),
            );
            expect(own[0]?.filters.some((filter) => matches(filter, subject))).toBe(expected);
          }
        }
      }),
    );
  });

  it("is one segment where every binding is open and begins at or below the start", () => {
    fc.assert(
      fc.property(fc.array(interval, { maxLength: 6 }), (intervals) => {
        const open = intervals.map(({ filters, from }) => ({ filters, from }));
        expect(segmentsAbove(12, open)).toHaveLength(1);
      }),
    );
  });
});
