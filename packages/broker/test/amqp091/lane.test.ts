// A lane: commands run in the order in which they came, however long each takes.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Lane } from "../../src/amqp091/lane.ts";

const QUIET = { waiting: () => undefined };

describe("Lane", () => {
  it("law: each command runs once, in order, and none while an earlier one waits", async () => {
    const kinds = fc.array(fc.constantFrom("at once", "later"), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(kinds, async (commands) => {
        const ran: number[] = [];
        let pending = 0;
        let waiting = 0;
        const lane = new Lane<number>(
          (command) => {
            expect(pending).toBe(0);
            ran.push(command);
            if (commands[command] === "at once") return undefined;
            pending++;
            return new Promise<void>((resolve) =>
              setImmediate(() => {
                pending--;
                resolve();
              }),
            );
          },
          () => false,
          { waiting: (count) => (waiting += count) },
        );
        for (let i = 0; i < commands.length; i++) lane.push(i, 1);
        while (ran.length < commands.length || pending > 0) await new Promise((resolve) => setImmediate(resolve));
        expect(ran).toEqual(commands.map((_, i) => i));
        expect(waiting).toBe(0);
        expect(lane.length).toBe(0);
      }),
      { numRuns: 50 },
    );
  });

  it("runs a command without a promise in the turn in which it comes", () => {
    const ran: string[] = [];
    const lane = new Lane<string>(
      (c) => void ran.push(c) as undefined,
      () => false,
      QUIET,
    );
    lane.push("a", 0);
    expect(ran).toEqual(["a"]);
  });

  it("begins nothing while it is held, and goes on afterwards", () => {
    let held = true;
    const ran: string[] = [];
    const lane = new Lane<string>(
      (c) => void ran.push(c) as undefined,
      () => held,
      QUIET,
    );
    lane.push("a", 0);
    lane.push("b", 0);
    expect(ran).toEqual([]);
    held = false;
    lane.go();
    expect(ran).toEqual(["a", "b"]);
  });

  it("gives the running command its fitting neighbours, and no others", async () => {
    const ran: string[] = [];
    const lane: Lane<string> = new Lane<string>(
      async (command) => {
        await undefined;
        const binds = (next: string): next is string => next.startsWith("bind");
        ran.push([command, ...(binds(command) ? lane.takeNext(binds) : [])].join("+"));
      },
      () => false,
      QUIET,
    );
    for (const command of ["bind1", "bind2", "bind3", "get", "bind4"]) lane.push(command, 0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(ran).toEqual(["bind1+bind2+bind3", "get", "bind4"]);
  });

  it("runs nothing after it was stopped, and counts what it drops as waiting no more", async () => {
    let waiting = 0;
    let octets = 0;
    const ran: number[] = [];
    const lane = new Lane<number>(
      async (command) => {
        ran.push(command);
        await new Promise((resolve) => setImmediate(resolve));
      },
      () => false,
      {
        waiting: (count, size) => {
          waiting += count;
          octets += size;
        },
      },
    );
    for (let i = 0; i < 5; i++) lane.push(i, 10);
    expect([waiting, octets]).toEqual([4, 40]);
    lane.stop();
    lane.push(6, 10);
    expect([waiting, octets]).toEqual([0, 0]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(ran).toEqual([0]);
  });
});
