/** The records that continue a chain after a torn line. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Line } from "../chain/lines.ts";
import { CHAIN, encodeFields, GENESIS, sealRecord } from "../chain/record.ts";
import { ChainWalk } from "./walk.ts";

const TIME = "2026-01-31T12:00:00.000Z";
const TORN = '{"half of a rec';

function record(
  seq: number,
  prev: string,
  type: string,
  fields: Readonly<Record<string, string | number>>,
): { readonly hash: string; readonly line: string } {
  return sealRecord({ chain: "gw", seq, time: TIME, type, prev }, encodeFields(fields));
}

/** Takes these lines, the last of which may lack its end. */
function take(walk: ChainWalk, texts: readonly (string | Buffer)[], ended = true): void {
  let offset = 0;
  for (const [index, each] of texts.entries()) {
    const bytes = Buffer.from(each);
    const line: Line = {
      text: bytes.toString(),
      bytes,
      offset,
      number: index + 1,
      ended: ended || index < texts.length - 1,
    };
    walk.take(line);
    offset += bytes.length + 1;
  }
}

/** Walks these lines, and returns the number of the last record and whether the chain is broken. */
function walked(...texts: readonly string[]): {
  readonly seq: number | undefined;
  broken: boolean;
} {
  const walk = new ChainWalk("gw", undefined);
  take(walk, texts);
  return { seq: walk.last?.seq, broken: walk.broken !== undefined };
}

/** The fields of the mark that explains these bytes. */
const markOf = (text: string): { readonly bytes: number; readonly sha256: string } => ({
  bytes: Buffer.byteLength(text),
  sha256: createHash("sha256").update(text).digest("hex"),
});

const first = record(1, GENESIS, "LLM_CALL", {});
const mark = markOf(TORN);

describe("a line that is no record", () => {
  test("breaks the chain until its mark", () => {
    const next = record(2, first.hash, CHAIN.torn, mark);
    expect(walked(first.line, TORN)).toEqual({ seq: 1, broken: true });
    expect(walked(first.line, TORN, next.line)).toEqual({ seq: 2, broken: false });
  });

  test.each<[name: string, type: string, fields: Readonly<Record<string, string | number>>]>([
    ["a record of another type that only mentions it", "LLM_CALL", { ...mark, text: CHAIN.torn }],
    ["the mark of another length", CHAIN.torn, { ...mark, bytes: mark.bytes + 1 }],
    ["the mark of other bytes", CHAIN.torn, { ...mark, sha256: "0".repeat(64) }],
    ["a mark without either", CHAIN.torn, {}],
  ])("is not explained by %s", (_name, type, fields) => {
    const next = record(2, first.hash, type, fields);
    expect(walked(first.line, TORN, next.line)).toEqual({ seq: 1, broken: true });
  });

  test("is not explained by a mark that does not follow the last record", () => {
    for (const next of [
      record(3, first.hash, CHAIN.torn, mark),
      record(2, GENESIS, CHAIN.torn, mark),
    ])
      expect(walked(first.line, TORN, next.line)).toEqual({ seq: 1, broken: true });
  });
});

describe("several lines that are no records", () => {
  const lines = [TORN, "", "r\u00e9st"];
  const all = lines.join("\n");

  test("are explained by the mark of all of their bytes, with the ends between them", () => {
    const next = record(2, first.hash, CHAIN.torn, markOf(all));
    expect(walked(first.line, ...lines, next.line)).toEqual({ seq: 2, broken: false });
  });

  test.each([
    ["the first", TORN],
    ["the last", lines[2] ?? ""],
    ["all of them without the ends between them", lines.join("")],
    ["all of them with one more end", `${all}\n`],
  ])("are not explained by the mark of %s", (_name, text) => {
    const next = record(2, first.hash, CHAIN.torn, markOf(text));
    expect(walked(first.line, ...lines, next.line)).toEqual({ seq: 1, broken: true });
  });

  test("may be followed by marks of something else, which are bytes like any others", () => {
    const wrong = record(2, first.hash, CHAIN.torn, { ...mark, bytes: 1 }).line;
    const other = record(2, first.hash, CHAIN.torn, { ...mark, sha256: "0".repeat(64) }).line;
    const right = record(2, first.hash, CHAIN.torn, markOf([TORN, wrong, other].join("\n")));
    expect(walked(first.line, TORN, wrong, other)).toEqual({ seq: 1, broken: true });
    expect(walked(first.line, TORN, wrong, other, right.line)).toEqual({ seq: 2, broken: false });
  });
});

describe("what breaks a chain is told", () => {
  const second = record(2, first.hash, "LLM_CALL", {});
  const fifth = record(5, first.hash, "LLM_CALL", {});
  const stranger = sealRecord(
    { chain: "other", seq: 2, time: TIME, type: "LLM_CALL", prev: first.hash },
    encodeFields({}),
  );

  test.each<[name: string, line: string, seq: number | undefined]>([
    ["what is no record", TORN, undefined],
    ["a record that comes too early", fifth.line, 5],
    ["a record that comes again", first.line, 1],
    ["a record after another one", record(2, GENESIS, "LLM_CALL", {}).line, 2],
    ["a record of another chain", stranger.line, 2],
  ])("%s: by its line and number", (_name, line, seq) => {
    const walk = new ChainWalk("gw", undefined);
    take(walk, [first.line, line, second.line]);
    expect(walk.last).toEqual({ seq: 1, hash: first.hash });
    expect(walk.broken).toMatchObject({ line: 2, seq, unfinished: false });
    expect(walk.broken?.message).not.toBe("");
    expect(walk.broken?.bytes).toBe(line.length + 1 + second.line.length);
  });

  test("a line without its end is unfinished if it is no record, and not if it is a wrong one", () => {
    for (const [line, unfinished] of [
      [TORN, true],
      [fifth.line, false],
    ] as const) {
      const walk = new ChainWalk("gw", undefined);
      take(walk, [first.line, line], false);
      expect(walk.broken).toMatchObject({ line: 2, unfinished, bytes: line.length });
    }
  });

  test("a record whose bytes are not those of its text", () => {
    const text = record(2, first.hash, "LLM_CALL", { text: "\ufffd" }).line;
    const bytes = Buffer.from(text);
    const at = bytes.indexOf(Buffer.from("\ufffd"));
    const forged = Buffer.concat([
      bytes.subarray(0, at),
      Buffer.from([0xff]),
      bytes.subarray(at + 3),
    ]);
    expect(forged.toString()).toBe(text);
    const walk = new ChainWalk("gw", undefined);
    take(walk, [first.line, bytes]);
    expect(walk.broken).toBeUndefined();
    const other = new ChainWalk("gw", undefined);
    take(other, [first.line, forged]);
    expect(other.broken).toMatchObject({ line: 2, seq: 2, bytes: forged.length });
  });
});

describe("where a chain begins", () => {
  test("any first record is taken if nothing is known, of any chain if it has no name", () => {
    const late = record(7, "a".repeat(64), "LLM_CALL", {});
    expect(walked(late.line)).toEqual({ seq: 7, broken: false });
    const walk = new ChainWalk(undefined, undefined);
    take(walk, [late.line]);
    expect(walk.last).toEqual({ seq: 7, hash: late.hash });
  });

  test("it goes on after what is known, and not from elsewhere", () => {
    const known = { seq: 1, hash: first.hash };
    for (const [line, seq] of [
      [record(2, first.hash, "LLM_CALL", {}).line, 2],
      [record(2, GENESIS, "LLM_CALL", {}).line, 1],
      [record(3, first.hash, "LLM_CALL", {}).line, 1],
    ] as const) {
      const walk = new ChainWalk("gw", known);
      take(walk, [line]);
      expect(walk.last?.seq).toBe(seq);
    }
  });
});
