// What one connection may have: refused beyond the limit, and not for what is gone.
import { describe, expect, it } from "vitest";
import { DEFAULT_LIMITS } from "../../src/amqp091/limits.ts";
import { Quota } from "../../src/amqp091/quota.ts";

describe("Quota", () => {
  it("refuses queues beyond the limit, but never one that it has declared", () => {
    const quota = new Quota({ ...DEFAULT_LIMITS, queues: 2 }, () => true);
    for (const name of ["a", "b", "a"]) {
      expect(quota.forQueue(name)).toBeUndefined();
      quota.declared(name);
    }
    expect(quota.forQueue("c")).toMatchObject({ code: 506, scope: "channel" });
    expect(quota.forQueue("b")).toBeUndefined();
    quota.deleted("a");
    expect(quota.forQueue("c")).toBeUndefined();
  });

  it("lets a connection make temporary queues and bindings for ever", () => {
    const alive = new Set<string>();
    const quota = new Quota({ ...DEFAULT_LIMITS, queues: 3, bindings: 4 }, (name) => alive.has(name));
    for (let i = 0; i < 50; i++) {
      expect(quota.forQueue(`q${i}`)).toBeUndefined();
      expect(quota.forBindings(2)).toBeUndefined();
      quota.declared(`q${i}`);
      quota.bound(`q${i}`);
      quota.bound(`q${i}`);
      alive.clear(); // the one before was auto-deleted
      alive.add(`q${i}`);
    }
    expect(quota.forBindings(3)).toMatchObject({ code: 506 });
  });

  it("counts what was unbound no more, and nothing below zero", () => {
    const quota = new Quota({ ...DEFAULT_LIMITS, bindings: 1 }, () => true);
    quota.unbound("q");
    quota.bound("q");
    expect(quota.forBindings(1)).toMatchObject({ code: 506 });
    quota.unbound("q");
    quota.unbound("q");
    expect(quota.forBindings(1)).toBeUndefined();
    expect(quota.forBindings(2)).toMatchObject({ code: 506 });
  });

  it("refuses consumers beyond the limit", () => {
    const quota = new Quota({ ...DEFAULT_LIMITS, consumers: 1 }, () => true);
    quota.consuming(1);
    expect(quota.forConsumer()).toMatchObject({ code: 506 });
    quota.consuming(-1);
    expect(quota.forConsumer()).toBeUndefined();
  });
});
