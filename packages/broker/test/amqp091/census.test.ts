// Who is connected: each limit refuses with its own words, gives back what it counted, and makes room where it says so.
import { describe, expect, it } from "vitest";
import { Census, originOf } from "../../src/amqp091/census.ts";
import { DEFAULT_LIMITS } from "../../src/amqp091/limits.ts";

const from = (origin: string) => {
  const dropped: string[] = [];
  return { origin, dropped, drop: (reason: string) => void dropped.push(reason) };
};

describe("Census", () => {
  it.each([
    ["too-many-connections", { connections: 2 }, "b", "v"],
    ["too-many-from-address", { connectionsPerAddress: 2 }, "a", "v"],
    ["too-many-of-user", { connectionsPerUser: 2 }, "b", "u"],
  ])("%s, until one has gone", (name, limit, origin, user) => {
    const census = new Census();
    const limits = { ...DEFAULT_LIMITS, ...limit };
    const leave = [from("a"), from("a")].map((one) => census.enter(one, "u", limits));
    expect(census.enter(from(origin), user, limits)).toMatchObject({ kind: "refusal", name, code: 530 });
    const [first] = leave;
    if (typeof first === "function") first();
    expect(census.enter(from(origin), user, limits)).toBeTypeOf("function");
    expect(census.counters()).toMatchObject({ connections: 2, opened: 3 });
  });

  it("lets the oldest handshake make room for the next", () => {
    const census = new Census();
    const limits = { ...DEFAULT_LIMITS, handshakes: 2 };
    const [first, second, third] = [from("a"), from("a"), from("b")];
    for (const one of [first, second, third]) expect(census.arrived(one, limits)).toBe(true);
    expect([first, second, third].map(({ dropped }) => dropped.length)).toEqual([1, 0, 0]);
    census.settled(second);
    expect(census.arrived(from("c"), limits)).toBe(true);
    expect(third.dropped).toEqual([]);
    expect(census.counters()).toMatchObject({ handshakes: 2, displaced: 1, accepted: 4 });
  });

  it("takes no socket beyond those that may be open and those that may begin, until one is closed", () => {
    const census = new Census();
    const limits = { ...DEFAULT_LIMITS, connections: 1, handshakes: 1 };
    const closing = [from("a"), from("a")];
    for (const one of closing) {
      census.arrived(one, limits);
      census.settled(one);
    }
    expect(census.arrived(from("b"), limits)).toBe(false);
    for (const one of closing) census.gone(one);
    expect(census.arrived(from("b"), limits)).toBe(true);
    expect(census.counters()).toMatchObject({ sockets: 1 });
  });
});

describe("whom an address stands for", () => {
  it.each([
    ["192.0.2.7:5000", "192.0.2.7"],
    ["::ffff:192.0.2.7:5000", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6:5000", "2001:db8:1:2::/64"],
    ["2001:db8:1:2:ffff::9:5000", "2001:db8:1:2::/64"],
    ["2001:db8::1:5000", "2001:db8:0:0::/64"],
    ["::1:5000", "0:0:0:0::/64"],
    ["fe80::1%eth0:5000", "fe80:0:0:0::/64"],
  ])("%s is %s", (remote, origin) => {
    expect(originOf(remote)).toBe(origin);
  });
});
