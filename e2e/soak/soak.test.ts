// Twenty seconds of the soak in CI: too short to say anything of memory, long enough for whatever leaks with each
// connection, queue or binding. AMQP_SOAK_SECONDS makes it longer; then memory is looked at as well.
import { afterAll, describe, expect, it } from "vitest";
import { releaseAll } from "../harness/owned.ts";
import { judge, type SoakResult, soak } from "./soak.ts";
import { type Counts, slope } from "./watch.ts";

const seconds = Number(process.env.AMQP_SOAK_SECONDS ?? 20);

afterAll(releaseAll);

it(
  "leaves nothing behind",
  async () => {
    const result = await soak({ seed: 1, seconds });
    expect(judge(result, seconds < 600 ? Number.POSITIVE_INFINITY : 0.5)).toEqual([]);
    expect(result.work.calls).toBeGreaterThan(seconds);
    expect(result.work.queues).toBeGreaterThan(seconds);
    expect(result.work.confirmed).toBeGreaterThan(seconds * 20);
  },
  (seconds + 150) * 1_000,
);

describe("the judge of the soak", () => {
  const counts: Counts = { messages: 0, consumers: ["q"], keys: ["q.q"], leases: 2, connections: 4, subscriptions: 40 };
  const memory = Array.from({ length: 30 }, (_, n) => ({ at: n * 10_000, gateways: [100 << 20], bus: 50 << 20 }));
  const right: SoakResult = {
    work: {
      published: 1,
      confirmed: 1,
      delivered: 1,
      calls: 1,
      connections: 1,
      queues: 1,
      heard: new Map(),
      troubles: [],
    },
    memory,
    before: counts,
    after: counts,
    end: { ...counts, consumers: [], keys: [] },
    warnings: [],
  };

  it("finds nothing in a right one", () => {
    expect(judge(right, 0.5)).toEqual([]);
  });

  it.each([
    ["messages", { after: { ...counts, messages: 1 } }],
    ["consumers", { after: { ...counts, consumers: ["q", "left"] } }],
    ["keys", { end: { ...counts, consumers: [] } }],
    ["leases", { after: { ...counts, leases: 3 } }],
    ["subscriptions", { after: { ...counts, subscriptions: 41 } }],
    ["connections", { after: { ...counts, connections: 5 } }],
    ["gateway 0", { memory: memory.map((each) => ({ ...each, gateways: [each.at * 100] })) }],
    ["nats-server", { memory: memory.map((each) => ({ ...each, bus: each.at * 100 })) }],
    ["trouble", { work: { ...right.work, troubles: ["trouble"] } }],
  ] as const)("finds %s", (what, change) => {
    const wrong = judge({ ...right, ...(change as Partial<SoakResult>) }, 0.5);
    expect(wrong).toHaveLength(1);
    expect(wrong[0]).toContain(what);
  });

  it("measures a line's slope", () => {
    const points = [0, 1, 2, 3].map((minute) => ({ at: minute * 60_000, octets: 7 + minute * 1_000 }));
    expect(slope(points)).toBeCloseTo(1_000);
  });
});
