// Every refusal a client can provoke, over a real socket: reply code, the class and method that were sent, a sentence
// that names the remedy, and what survives. HIP §4: the channel closes, the connection goes on. The cases are held
// against the broker's own table, so that a row without a case fails here.

import { REFUSALS, type RefusalName } from "@amqp/broker";
import { describe, expect, it } from "vitest";
import { startGateway } from "../harness/gateway.ts";
import { target } from "../harness/target.ts";
import { CONNECTION, ELSEWHERE } from "./connection-refusals.ts";
import { NOT_IMPLEMENTED } from "./not-implemented.ts";
import { type Case, checkRefusal } from "./refused.ts";
import { WRONG } from "./wrong.ts";

const CASES: Partial<Record<RefusalName, readonly Case[]>> = { ...NOT_IMPLEMENTED, ...WRONG, ...CONNECTION };
const rows = Object.keys(REFUSALS) as RefusalName[];

describe.each(Object.entries(CASES) as [RefusalName, readonly Case[]][])("%s", (name, cases) => {
  it.concurrent.each(cases.map((refused) => [refused.when, refused] as const))(
    "a client that %s",
    async (_, refused) => {
      if (refused.env === undefined) return await checkRefusal(await target(), name, refused);
      const gateway = await startGateway({ env: refused.env });
      await checkRefusal({ host: "127.0.0.1", port: gateway.port }, name, refused);
      await gateway.stop();
    },
  );
});

describe("the table of refusals", () => {
  it.each(rows)("has a case for %s, or says where it is tried", (name) => {
    expect([CASES[name], ELSEWHERE[name]].filter((each) => each !== undefined)).toHaveLength(1);
  });

  it("has a row for every case", () => {
    const named = [...Object.keys(CASES), ...Object.keys(ELSEWHERE)];
    expect(named.filter((name) => !Object.hasOwn(REFUSALS, name))).toEqual([]);
  });

  it("answers 540 on the channel for all that HIP §4 lists", () => {
    const listed = rows.filter((name) => "notImplemented" in REFUSALS[name]);
    expect(listed.length).toBeGreaterThanOrEqual(6);
    for (const name of listed) {
      expect(REFUSALS[name]).toMatchObject({ code: 540, scope: "channel" });
      expect(NOT_IMPLEMENTED[name], name).toBeDefined();
    }
  });
});
