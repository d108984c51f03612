import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Lanes } from "../../src/core/lanes.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("law: tasks of one name never overlap and end in the order in which they were given, whatever each takes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ name: fc.constantFrom("a", "b"), turns: fc.nat(3), fails: fc.boolean() })),
      async (tasks) => {
        const lanes = new Lanes();
        const running = new Map<string, number>();
        const ended: Record<string, number[]> = { a: [], b: [] };
        const all = tasks.map(({ name, turns, fails }, at) =>
          lanes.run(name, async () => {
            expect(running.get(name) ?? 0).toBe(0);
            running.set(name, 1);
            for (let n = 0; n < turns; n++) await turn();
            running.set(name, 0);
            ended[name]?.push(at);
            if (fails) throw new Error("as asked");
          }),
        );
        const results = await Promise.allSettled(all);
        expect(results.map(({ status }) => status === "rejected")).toEqual(tasks.map(({ fails }) => fails));
        for (const name of ["a", "b"]) expect(ended[name]).toEqual([...(ended[name] ?? [])].sort((x, y) => x - y));
      },
    ),
    { numRuns: 50 },
  );
});

test("what is joined in one turn reaches the joiner in one call, and each is answered by its place", async () => {
  const lanes = new Lanes();
  const calls: (readonly number[])[] = [];
  const joiner = async (items: readonly number[]): Promise<readonly number[]> => {
    calls.push(items);
    await turn();
    return items.map((item) => item * 2);
  };
  const answers = await Promise.all([1, 2, 3].map((item) => lanes.join("q", item, joiner)));
  expect(answers).toEqual([2, 4, 6]);
  expect(calls).toEqual([[1, 2, 3]]);
});

test("clients that each come again when they are answered go on sharing steps", async () => {
  const lanes = new Lanes();
  const sizes: number[] = [];
  const joiner = async (items: readonly number[]): Promise<readonly number[]> => {
    sizes.push(items.length);
    await sleep(20);
    return items;
  };
  const client = async (): Promise<void> => {
    for (let n = 0; n < 10; n++) {
      await lanes.join("q", n, joiner);
      await turn();
    }
  };
  await Promise.all(Array.from({ length: 20 }, client));
  expect(sizes.reduce((sum, size) => sum + size)).toBe(200);
  expect(sizes.length).toBeLessThan(15);
});

test("a task between two joined items keeps them apart", async () => {
  const lanes = new Lanes();
  const log: string[] = [];
  const joiner = async (items: readonly string[]): Promise<readonly undefined[]> => {
    log.push(items.join("+"));
    return items.map(() => undefined);
  };
  await Promise.all([
    lanes.join("q", "a", joiner),
    lanes.join("q", "b", joiner),
    lanes.run("q", async () => {
      log.push("unbind");
    }),
    lanes.join("q", "c", joiner),
  ]);
  expect(log).toEqual(["a+b", "unbind", "c"]);
});

test("a joiner that fails fails each of its items, and the lane goes on", async () => {
  const lanes = new Lanes();
  const joiner = async (): Promise<readonly never[]> => {
    throw new Error("no bus");
  };
  const failed = await Promise.allSettled([lanes.join("q", 1, joiner), lanes.join("q", 2, joiner)]);
  expect(failed.every(({ status }) => status === "rejected")).toBe(true);
  await expect(lanes.run("q", async () => "next")).resolves.toBe("next");
});
