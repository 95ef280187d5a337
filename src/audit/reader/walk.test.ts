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

/** Walks these lines, and returns the number of the last record and whether the chain is broken. */
function walked(...texts: readonly string[]): {
  readonly seq: number | undefined;
  broken: boolean;
} {
  const walk = new ChainWalk("gw", undefined);
  let offset = 0;
  for (const [index, text] of texts.entries()) {
    const bytes = Buffer.from(text);
    const line: Line = { text, bytes, offset, number: index + 1, ended: true };
    walk.take(line);
    offset += bytes.length + 1;
  }
  return { seq: walk.last?.seq, broken: walk.broken !== undefined };
}

const first = record(1, GENESIS, "LLM_CALL", {});
const mark = { bytes: TORN.length, sha256: createHash("sha256").update(TORN).digest("hex") };

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
