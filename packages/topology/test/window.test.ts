import { expect, it } from "vitest";
import { Window } from "../src/nats/window.ts";

it("lets so many run at once, in order, and goes on after a failure", async () => {
  const window = new Window(3);
  const started: number[] = [];
  let running = 0;
  let most = 0;
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      window.run(async () => {
        started.push(i);
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        if (i % 4 === 0) throw new Error("refused");
      }),
    ),
  );
  expect(most).toBe(3);
  expect(started).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(results.filter(({ status }) => status === "rejected")).toHaveLength(5);
});
