import { describe, expect, test } from "vitest";
import type { StreamOutcome, StreamReader } from "../dialects/dialect.ts";
import { createStreamTotals } from "./stream-totals.ts";

const TOTALS = [
  ["x-svc-input-tokens", "3"],
  ["x-svc-output-tokens", "4"],
] as const;
const MEMBER = `"svc":{"x-svc-input-tokens":"3","x-svc-output-tokens":"4"}`;
const COMMENT = ": x-svc-input-tokens=3 x-svc-output-tokens=4\n\n";

class FakeReader {
  usageIsFinal = false;
  outcome: StreamOutcome = { kind: "complete" };
}

/** Passes chunks, the last `final` of which come with or after the final usage. */
function written(
  form: "comment" | "member",
  chunks: readonly string[],
  { final = 1, outcome }: { final?: number; outcome?: StreamOutcome } = {},
): { readonly sent: string; readonly end: string } {
  const reader = new FakeReader();
  if (outcome !== undefined) reader.outcome = outcome;
  const totals = createStreamTotals(form, reader as unknown as StreamReader);
  const sent = chunks.slice(0, -1).map((chunk, index) => {
    reader.usageIsFinal = index >= chunks.length - final;
    return totals.pass(Buffer.from(chunk)).toString();
  });
  reader.usageIsFinal = final > 0;
  const rest = Buffer.from(chunks.at(-1) ?? "");
  return { sent: sent.join(""), end: totals.end(rest, TOTALS).toString() };
}

describe("a last comment", () => {
  test.each([
    ["after an event of LF", "data: {}\n\n", ""],
    ["after an event of CRLF", "data: {}\r\n\r\n", ""],
    ["after an event of CR", "data: {}\r\r", ""],
    ["after an event without its blank line", "data: {}", "\n\n"],
    ["after an event with half of its blank line", "data: {}\n", "\n\n"],
  ])("%s", (_title, last, between) => {
    expect(written("comment", [last, ""])).toEqual({ sent: last, end: between + COMMENT });
    expect(written("comment", [last])).toEqual({ sent: "", end: last + between + COMMENT });
  });
});

describe("a member of the last event", () => {
  const FIRST = `data: {"candidates":[1]}\n\n`;
  const LAST = `data: {"candidates":[2],"usageMetadata":{"n":1}}`;
  const WITH = `data: {"candidates":[2],"usageMetadata":{"n":1},${MEMBER}}`;

  test.each(["\n\n", "\r\n\r\n", "", "\n"])("that ends with %j", (end) => {
    expect(written("member", [FIRST, LAST + end])).toEqual({ sent: FIRST, end: WITH + end });
  });

  test("that came before the end of the stream, and is held", () => {
    expect(written("member", [FIRST, `${LAST}\n\n`, ""], { final: 2 })).toEqual({
      sent: FIRST,
      end: `${WITH}\n\n`,
    });
  });

  test("of several that followed the final usage, in their order", () => {
    expect(written("member", [`${LAST}\n\n`, FIRST, `${LAST}\n\n`], { final: 3 }).end).toBe(
      `${LAST}\n\n${FIRST}${WITH}\n\n`,
    );
  });

  test("is not written where no event is left to write it in", () => {
    expect(written("member", [FIRST, ""], { final: 0 })).toEqual({ sent: FIRST, end: "" });
    expect(written("member", [FIRST, `${LAST}\n\n: a comment\n\n`]).end).not.toContain("svc");
  });

  test.each([{ kind: "cut" }, { kind: "error", message: "no" }] as const)(
    "is not written into the error of a stream that was $kind",
    (outcome) => {
      const error = `data: {"error":{"code":502}}\n\n`;
      expect(written("member", [FIRST, error], { final: 0, outcome }).end).toBe(error);
    },
  );

  test("is not written into a last event that is too large to be held", () => {
    const large = `data: {"candidates":["${"x".repeat(1024 * 1024)}"]}\n\n`;
    expect(written("member", [large, ""], { final: 2 })).toEqual({ sent: large, end: "" });
  });
});
