// The one table of refusals: every row fits a reply text, whatever a client sent, and each code has its name.
import { ReplyCode } from "@amqp/codec";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toClosing } from "../src/amqp091/reply.ts";
import { notImplemented } from "../src/not-implemented.ts";
import { type Detail, REFUSALS, type RefusalName, type RefusalRow, refuse } from "../src/refusals.ts";

const ROWS = Object.entries(REFUSALS) as [RefusalName, RefusalRow][];
const text = fc.string({ unit: "binary", maxLength: 300 });
const detail: fc.Arbitrary<Detail> = fc.record({
  queue: text,
  exchange: text,
  key: text,
  tag: fc.oneof(text, fc.integer()),
  argument: text,
  wanted: text,
  present: text,
  text,
});

describe.each(ROWS)("the refusal %s", (name, row) => {
  it("fits a short string for every detail, and begins with its code's name", () => {
    const code = Object.entries(ReplyCode).find(([, number]) => number === row.code)?.[0];
    expect(code).toBeDefined();
    fc.assert(
      fc.property(detail, (sent) => {
        const { replyText, replyCode } = toClosing(refuse(name, sent), undefined);
        expect(Buffer.byteLength(replyText)).toBeLessThanOrEqual(255);
        expect(replyText.startsWith(`${code} - `)).toBe(true);
        expect(replyCode).toBe(row.code);
      }),
      { numRuns: 50 },
    );
  });

  it("says every detail that its row speaks of, and leaves no place open", () => {
    const sent: Detail = {
      queue: "qq",
      exchange: "xx",
      key: "kk",
      tag: 77,
      argument: "aa",
      wanted: "ww",
      present: "pp",
      text: "tt",
    };
    const said = refuse(name, sent).text;
    expect(said).not.toMatch(/\{(queue|exchange|key|tag|argument|wanted|present|text)(:\d+)?\}/u);
    for (const [, key] of row.text.matchAll(/\{(\w+)(?::\d+)?\}/gu)) {
      if (key !== undefined && key in sent) expect(said).toContain(String(sent[key as keyof Detail]));
    }
  });
});

describe("what is not implemented", () => {
  it("is a channel exception, so that the connection survives (HIP §4)", () => {
    for (const [, row] of ROWS) if (row.code === 540) expect(row.scope).toBe("channel");
  });

  it("names the remedy whole, also with the longest names", () => {
    const long = "n".repeat(255);
    for (const [name, row] of ROWS) {
      if (row.notImplemented === undefined) continue;
      const said = refuse(name, { argument: long, wanted: long, queue: long }).text;
      const remedy = row.text.slice(row.text.lastIndexOf("}") + 1);
      expect(said.endsWith(remedy)).toBe(true);
    }
  });

  it("lists what HIP §4 lists", () => {
    const table = notImplemented();
    const listed = table.map((row) => row.what).join("\n");
    for (const what of [
      "headers",
      "tx",
      "prefetch-size",
      "immediate",
      "channel.flow(false)",
      "exchange-to-exchange",
      "`#`",
      "recover-async",
    ]) {
      expect(listed).toContain(what);
    }
    for (const row of table) expect(row.answer.length).toBeGreaterThan(20);
  });
});
