import { describe, expect, test } from "vitest";
import { type AuditRecord, GENESIS } from "../chain/record.ts";
import { printable, renderReport, tableHead, tableRow } from "./present.ts";
import type { ChainReport } from "./verify.ts";

const RECORD: AuditRecord = {
  v: 1,
  chain: "gw",
  seq: 17,
  time: "2026-01-31T12:00:00.000Z",
  type: "LLM_CALL",
  fields: { workload: "default/a", model: "openai/m", tokens: 5, note: "two words" },
  prev: GENESIS,
  hash: "ff",
};

test.each([
  ["\u001b[31mred\u0007", "\\u{1b}[31mred\\u{7}"],
  ["right to left \u202e", "right to left \\u{202e}"],
  ["lines \u2028\u2029", "lines \\u{2028}\\u{2029}"],
  ["half a pair \ud800", "half a pair \\u{d800}"],
  ["é 日本 😀", "é 日本 😀"],
])("printable: %j", (text, expected) => {
  expect(printable(text)).toBe(expected);
});

describe("a row", () => {
  test("stands under its head", () => {
    const head = tableHead(false);
    const row = tableRow(RECORD, false);
    expect(row.indexOf(RECORD.time)).toBe(head.indexOf("TIME"));
    expect(row.indexOf("LLM_CALL")).toBe(head.indexOf("TYPE"));
    expect(row.indexOf("default/a")).toBe(head.indexOf("WORKLOAD"));
    expect(row.indexOf("model=")).toBe(head.indexOf("DETAILS"));
    expect(head).not.toContain("SEQ");
    expect(tableHead(true)).toBe(head.replace("DETAILS", "WRITER  SEQ  DETAILS"));
  });

  test("says each field once, and quotes what is no plain word", () => {
    const details = 'model=openai/m tokens=5 note="two words"';
    expect(tableRow(RECORD, false).endsWith(`  ${details}`)).toBe(true);
    expect(tableRow(RECORD, true).endsWith(`  gw  17  ${details}`)).toBe(true);
  });

  test.each([
    [99, "x".repeat(97)],
    [100, "x".repeat(98)],
    [101, `${"x".repeat(97)}…`],
  ])("has at most 100 characters of details, of %s", (length, shown) => {
    const fields = { workload: "default/a", a: "x".repeat(length - 2) };
    expect(tableRow({ ...RECORD, fields }, false).endsWith(`  a=${shown}`)).toBe(true);
    expect(tableRow({ ...RECORD, fields }, true).endsWith(`a=${fields.a}`)).toBe(true);
  });

  test("cannot control a terminal", () => {
    const hostile = "a\u001b[2J";
    const record = {
      ...RECORD,
      chain: hostile,
      type: hostile,
      time: hostile,
      fields: { workload: hostile, [hostile]: hostile, list: [hostile] },
    };
    for (const wide of [true, false]) expect(tableRow(record, wide)).not.toContain("\u001b");
  });

  test("has a dash for no workload, and nothing behind", () => {
    expect(tableRow({ ...RECORD, fields: { workload: 7 } }, false)).toMatch(/LLM_CALL +-$/);
    expect(tableRow({ ...RECORD, fields: {} }, true)).toMatch(/ -  +gw  17$/);
  });
});

describe("a report", () => {
  const REPORT: ChainReport = {
    chain: "gw",
    dir: "/audit/gw",
    records: 20,
    segments: 2,
    first: 1,
    last: { seq: 20, hash: "abc" },
    checkpoints: 3,
    signed: 18,
    unsigned: 2,
    closed: false,
    live: false,
    keys: ["k1", "k2"],
    keyFromFolder: false,
    gaps: 0,
    lost: 0,
    torn: 0,
    starts: 1,
    clockBack: 0,
    fault: undefined,
  };

  test("of a good chain", () => {
    expect(renderReport(REPORT)).toBe(
      [
        "gw: good (its writer ended without closing it)",
        "  records         1 to 20, in 2 segments",
        "  checkpoints     3, the last at record 18",
        "  not yet signed  2",
        "  end             20:abc",
        "  key             k1, k2",
      ].join("\n"),
    );
  });

  test.each<[string, Partial<ChainReport>, string]>([
    ["while it is written", { live: true, closed: true }, "gw: good (being written)"],
    ["that was closed", { closed: true }, "gw: good (closed and signed)"],
    ["without a record", { records: 0 }, "  records         none"],
    ["of one segment", { segments: 1 }, "  records         1 to 20, in 1 segment"],
    [
      "with the key of its own folder",
      { keys: ["k"], keyFromFolder: true },
      "  key             k (from the chain's own folder: name one you trust with --public-key)",
    ],
    [
      "that lost records",
      { lost: 4 },
      "  note            4 records could not be written, reported by 0 CHAIN.GAP",
    ],
    [
      "with an empty gap",
      { gaps: 1 },
      "  note            0 records could not be written, reported by 1 CHAIN.GAP",
    ],
    ["with a torn write", { torn: 1 }, "  note            1 writes were unfinished (CHAIN.TORN)"],
    ["whose clock went back", { clockBack: 1 }, "  note            the clock went back 1 times"],
  ])("of a chain %s", (_name, change, line) => {
    expect(renderReport({ ...REPORT, ...change }).split("\n")).toContain(line);
    expect(renderReport(REPORT).split("\n")).not.toContain(line);
  });

  test.each<[string, Partial<ChainReport>, string]>([
    ["in its first record", { records: 0 }, "Nothing before it was verified."],
    [
      "after signed records",
      {},
      "The 20 records before it are consistent; the last signed one is 18.",
    ],
    [
      "before the first signature",
      { signed: 0 },
      "The 20 records before it are consistent; the last signed one is none.",
    ],
  ])("of a bad chain: %s", (_name, change, good) => {
    const fault = { place: { file: "000002.jsonl", line: 17 }, message: "it was \u0007edited" };
    expect(renderReport({ ...REPORT, ...change, fault })).toBe(
      `gw: BAD\n  000002.jsonl, line 17: it was \\u{7}edited.\n  ${good}`,
    );
  });
});
