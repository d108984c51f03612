// What one connection may have: refused beyond the limit, and not for what is gone.
import { describe, expect, it } from "vitest";
import { DEFAULT_LIMITS } from "../../src/amqp091/limits.ts";
import { Quota } from "../../src/amqp091/quota.ts";
import type { Verbs } from "../../src/core/verbs.ts";
import { quietVerbs } from "./rig.ts";

/** Verbs to which those queues are there, in a namespace of that size. */
function verbs(exists: (queue: string) => boolean, size = { queues: 0, bindings: 0 }): Verbs {
  return { ...quietVerbs(), size, routable: ({ routingKey }) => exists(routingKey) };
}

describe("Quota", () => {
  it("refuses queues beyond the limit, but never one that it has declared", () => {
    const quota = new Quota({ ...DEFAULT_LIMITS, queues: 2 }, () => verbs(() => true));
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
    const quota = new Quota({ ...DEFAULT_LIMITS, queues: 3, bindings: 4 }, () => verbs((name) => alive.has(name)));
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
    const quota = new Quota({ ...DEFAULT_LIMITS, bindings: 1 }, () => verbs(() => true));
    quota.unbound("q");
    quota.bound("q");
    expect(quota.forBindings(1)).toMatchObject({ code: 506 });
    quota.unbound("q");
    quota.unbound("q");
    expect(quota.forBindings(1)).toBeUndefined();
    expect(quota.forBindings(2)).toMatchObject({ code: 506 });
  });

  it("refuses consumers beyond the limit", () => {
    const quota = new Quota({ ...DEFAULT_LIMITS, consumers: 1 }, () => verbs(() => true));
    quota.consuming(1);
    expect(quota.forConsumer()).toMatchObject({ code: 506 });
    quota.consuming(-1);
    expect(quota.forConsumer()).toBeUndefined();
  });

  it("refuses what its namespace has too much of, whoever made it, but not what is there", () => {
    const limits = { ...DEFAULT_LIMITS, namespaceQueues: 5, namespaceBindings: 9 };
    const quota = new Quota(limits, () => verbs((name) => name === "there", { queues: 5, bindings: 8 }));
    expect(quota.forQueue("new")).toMatchObject({ name: "too-many-in-namespace", code: 506, scope: "channel" });
    expect(quota.forQueue("there")).toBeUndefined();
    expect(quota.forBindings(1)).toBeUndefined();
    expect(quota.forBindings(2)).toMatchObject({ name: "too-many-in-namespace" });
  });
});
