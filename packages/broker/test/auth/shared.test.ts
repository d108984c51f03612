import { afterEach, expect, test } from "vitest";
import { type Sharable, Shared } from "../../src/auth/shared.ts";

const later = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Fake implements Sharable {
  holdsTransient = false;
  closed = 0;
  async close(): Promise<void> {
    this.closed++;
    await later(20);
  }
}

let made: Fake[] = [];
afterEach(() => {
  made = [];
});

const open = async (): Promise<Fake> => {
  const fake = new Fake();
  made.push(fake);
  await later(5);
  return fake;
};

test("who comes together shares one; another key has its own", async () => {
  const all = new Shared<Fake>(30);
  const [first, second, other] = await Promise.all([all.enter("a", open), all.enter("a", open), all.enter("b", open)]);
  expect(first.what).toBe(second.what);
  expect(other.what).not.toBe(first.what);
  expect(made).toHaveLength(2);
  await all.close();
  expect(made.map(({ closed }) => closed)).toEqual([1, 1]);
});

test("it is closed a while after the last has left, and not if somebody comes back", async () => {
  const all = new Shared<Fake>(60);
  const first = await all.enter("a", open);
  const second = await all.enter("a", open);
  first.leave();
  await later(100);
  expect(made[0]?.closed).toBe(0);
  second.leave();
  await later(20);
  const back = await all.enter("a", open);
  expect(back.what).toBe(first.what);
  await later(100);
  expect(made[0]?.closed).toBe(0);
  back.leave();
  await later(150);
  expect(made[0]?.closed).toBe(1);
  expect(all.size).toBe(0);
});

test("whoever comes while it closes gets a new one, after the old one is closed", async () => {
  const all = new Shared<Fake>(1);
  const first = await all.enter("a", open);
  first.leave();
  await expect.poll(() => made[0]?.closed, { interval: 1 }).toBe(1);
  expect((await all.enter("a", open)).what).not.toBe(first.what);
  expect(made).toHaveLength(2);
  await all.close();
});

test("it stays while something is there that its end would take", async () => {
  const all = new Shared<Fake>(10);
  const { what, leave } = await all.enter("a", open);
  what.holdsTransient = true;
  leave();
  await later(60);
  expect(what.closed).toBe(0);
  what.holdsTransient = false;
  await expect.poll(() => what.closed).toBe(1);
  await all.close();
});

test("what is dropped is not entered again, and closed when those who are in have left", async () => {
  const all = new Shared<Fake>(1);
  const first = await all.enter("a", open);
  all.drop("a");
  const second = await all.enter("a", open);
  expect(second.what).not.toBe(first.what);
  first.leave();
  await expect.poll(() => first.what.closed).toBe(1);
  expect(second.what.closed).toBe(0);
  await all.close();
  expect(second.what.closed).toBe(1);
});

test("where it cannot be opened who comes is refused, and the next one tries again", async () => {
  let tries = 0;
  const all = new Shared<Fake>(10);
  const shaky = async (): Promise<Fake> => {
    if (tries++ === 0) throw new Error("the bus is away");
    return open();
  };
  await expect(all.enter("a", shaky)).rejects.toThrow("the bus is away");
  expect((await all.enter("a", shaky)).what).toBeDefined();
  expect(all.size).toBe(1);
  await all.close();
});
