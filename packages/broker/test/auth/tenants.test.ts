import { afterEach, expect, test } from "vitest";
import { type Served, Tenants } from "../../src/auth/tenants.ts";
import { type Namespace, toNamespace } from "../../src/core/namespace.ts";
import { quietVerbs } from "../amqp091/rig.ts";

const namespaceOf = (org: string): Namespace => {
  const namespace = toNamespace(org);
  if (namespace === undefined) throw new Error(org);
  return namespace;
};
const A = namespaceOf("a");
const B = namespaceOf("b");
const later = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Fake implements Served {
  readonly verbs = quietVerbs();
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

const tenants = (linger = 30, serve?: () => Promise<Served>): Tenants =>
  new Tenants({
    linger,
    serve:
      serve ??
      (async () => {
        const fake = new Fake();
        made.push(fake);
        await later(5);
        return fake;
      }),
  });

test("logins that come together share one broker; another organisation has its own", async () => {
  const all = tenants();
  const [first, second, other] = await Promise.all([all.enter(A), all.enter(A), all.enter(B)]);
  expect(first).toBe(second);
  expect(other).not.toBe(first);
  expect(made).toHaveLength(2);
  await all.close();
  expect(made.map(({ closed }) => closed)).toEqual([1, 1]);
});

test("it is closed a while after the last has left, and not if somebody comes back", async () => {
  const all = tenants(60);
  const verbs = await all.enter(A);
  await all.enter(A);
  all.leave(A);
  await later(100);
  expect(made[0]?.closed).toBe(0);
  all.leave(A);
  await later(20);
  expect(await all.enter(A)).toBe(verbs);
  await later(100);
  expect(made[0]?.closed).toBe(0);
  all.leave(A);
  await later(150);
  expect(made[0]?.closed).toBe(1);
  expect(all.size).toBe(0);
});

test("whoever comes while it closes gets a new one, after the old one is closed", async () => {
  const all = tenants(1);
  const verbs = await all.enter(A);
  all.leave(A);
  await expect.poll(() => made[0]?.closed, { interval: 1 }).toBe(1);
  expect(await all.enter(A)).not.toBe(verbs);
  expect(made).toHaveLength(2);
  await all.close();
});

test("it stays while something is there that a stop would take", async () => {
  const all = tenants(10);
  await all.enter(A);
  const fake = made[0] as Fake;
  fake.holdsTransient = true;
  all.leave(A);
  await later(60);
  expect(fake.closed).toBe(0);
  fake.holdsTransient = false;
  await expect.poll(() => fake.closed).toBe(1);
  await all.close();
});

test("where it cannot be served the login fails, and the next one tries again", async () => {
  let tries = 0;
  const all = tenants(10, async () => {
    if (tries++ === 0) throw new Error("the bus is away");
    return new Fake();
  });
  await expect(all.enter(A)).rejects.toThrow("the bus is away");
  expect(await all.enter(A)).toBeDefined();
  await all.close();
});
