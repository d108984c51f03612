// A replica that is killed, or stands still for longer than its lease: what its clients held goes to others, what was
// theirs alone ends, and one that wakes up again harms nobody. design §4 (LEASE), §6 (SWEEP).
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, it } from "vitest";
import { releaseAll } from "../harness/owned.ts";
import { codeOf, drain, Fleet, publish, Taker, timeUntilGranted } from "./fleet.ts";

afterAll(releaseAll);

/** What may pass until the others have all that a dead process had, milliseconds. */
const RECOVERY = 15_000;
/** How long the topology may stand still when its leader dies, milliseconds. */
const STALL = 10_000;
/** How long a stopped process stands still, milliseconds: longer than any lease. */
const STOPPED = Number(process.env.AMQP_TEST_STOPPED_MS ?? 12_000);

const numbers = (count: number, from = 0): string[] => Array.from({ length: count }, (_, n) => `${n + from}`);

describe.concurrent.each([
  ["the leader", 0],
  ["a follower", 1],
])("%s killed (-9)", (_, victim) => {
  it("what its clients held is redelivered elsewhere, its exclusive queues and consumers end, the topology goes on", async ({
    expect,
  }) => {
    const fleet = await Fleet.start(3);
    const survivor = 2;
    const live = await fleet.confirms(survivor);
    await live.assertQueue("q");
    await live.assertQueue("alone");
    const dying = await fleet.channel(victim);
    await dying.assertQueue("own", { exclusive: true });
    await dying.assertQueue("gone", { autoDelete: true });
    await Taker.on(dying, "gone");
    await Taker.on(dying, "alone", { exclusive: true });
    const lost = await Taker.on(dying, "q");
    for (const text of numbers(20)) await publish(live, "", "q", text);
    await expect.poll(() => lost.messages.length).toBe(20);
    for (const message of lost.messages.slice(0, 5)) dying.ack(message);
    // Acknowledged more than a moment before the kill, it is not delivered again.
    await sleep(1000);
    const taker = await Taker.on(live, "q");
    const since = performance.now();
    await fleet.replica(victim).kill("SIGKILL");
    await live.assertExchange("x", "topic");
    await live.assertQueue("fresh");
    await live.bindQueue("fresh", "x", "#");
    expect(performance.now() - since).toBeLessThan(STALL);
    expect(await publish(live, "x", "k", "new")).toBe(true);
    await expect.poll(() => taker.texts, { timeout: RECOVERY }).toEqual(numbers(15, 5));
    expect(taker.messages.every(({ fields }) => fields.redelivered)).toBe(true);
    const left = (): number => RECOVERY - (performance.now() - since);
    await timeUntilGranted(
      async () => (await fleet.channel(1 - victim)).assertQueue("own", { exclusive: true }),
      left(),
    );
    await timeUntilGranted(async () => Taker.on(await fleet.channel(1 - victim), "alone", { exclusive: true }), left());
    await expect
      .poll(async () => codeOf((await fleet.channel(survivor)).checkQueue("gone")), { timeout: left() })
      .toBe(404);
    for (const message of taker.messages) live.ack(message);
    expect(await live.checkQueue("q")).toMatchObject({ messageCount: 0, consumerCount: 1 });
    expect(await drain(live, "fresh")).toEqual(["new"]);
    await fleet.disconnect();
  });
});

describe.concurrent.each([
  ["the leader", 0],
  ["a follower", 1],
])("%s stopped (-STOP) for longer than its lease, then continued", (_, sleeper) => {
  it("delivers nothing wrong afterwards, and settles nobody else's deliveries", async ({ expect }) => {
    const fleet = await Fleet.start(2);
    const awake = 1 - sleeper;
    const live = await fleet.confirms(awake);
    const dozing = await fleet.channel(sleeper);
    await live.assertQueue("q");
    await dozing.assertQueue("own", { exclusive: true });
    const own = await Taker.on(dozing, "own");
    const before = await Taker.on(dozing, "q");
    for (const text of numbers(10)) await publish(live, "", "q", text);
    await expect.poll(() => before.messages.length).toBe(10);

    process.kill(fleet.replica(sleeper).pid, "SIGSTOP");
    const stopped = performance.now();
    // They reach the sleeper's socket, and are read when these deliveries are long somebody else's.
    for (const message of before.messages) dozing.ack(message);
    const after = await Taker.on(live, "q");
    await expect.poll(() => after.texts, { timeout: RECOVERY }).toEqual(numbers(10));
    for (const text of numbers(5, 10)) await publish(live, "", "q", text);
    await expect.poll(() => after.texts).toEqual(numbers(15));
    await sleep(STOPPED - (performance.now() - stopped));
    process.kill(fleet.replica(sleeper).pid, "SIGCONT");
    await sleep(3000);

    // What the sleeper acknowledged was not its own any more: it comes again when its holder gives it back.
    for (const message of after.messages.slice(0, 5)) live.ack(message);
    for (const message of after.messages.slice(5, 15)) live.nack(message, false, true);
    const redelivered = (): string[] =>
      [...before.messages.slice(10), ...after.messages.slice(15)].map((m) => m.content.toString());
    await expect.poll(() => redelivered().toSorted(), { timeout: 5000 }).toEqual(numbers(10, 5).toSorted());
    for (const message of before.messages.slice(10)) dozing.ack(message);
    for (const message of after.messages.slice(15)) live.ack(message);
    // It is a replica like any other again.
    const other = await fleet.confirms(sleeper);
    await other.assertQueue("later");
    expect(await publish(live, "", "later", "one")).toBe(true);
    expect(await drain(other, "later")).toEqual(["one"]);
    expect(own.cancelled).toBe(1);
    await live.assertQueue("own", { exclusive: true });
    await expect.poll(async () => (await live.checkQueue("q")).messageCount).toBe(0);
    await sleep(500);
    expect(redelivered()).toHaveLength(10);
    await fleet.disconnect();
  });
});
