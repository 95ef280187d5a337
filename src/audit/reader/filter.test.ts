import { describe, expect, test } from "vitest";
import { createFilter } from "./filter.ts";
import { type AuditRecord, encodeFields, GENESIS, sealRecord } from "../chain/record.ts";
import { REFUSALS_LEFT_OUT } from "../refusals/refusals.ts";

/**
 * Returns whether `svc audit <workload>` shows a record: filtered by its line first, then by its
 * members.
 */
function shows(workload: string, type: string, fields: Readonly<Record<string, unknown>>): boolean {
  const header = { chain: "gw", seq: 1, time: "2026-01-31T12:00:00.000Z", type, prev: GENESIS };
  const { line } = sealRecord(header, encodeFields(fields as Record<string, string>));
  const filter = createFilter({ workload, types: [], since: undefined });
  const { holds } = filter;
  if (holds.length > 0 && !holds.some((part) => line.includes(part))) return false;
  return filter.matches(JSON.parse(line) as AuditRecord);
}

describe("a workload's records", () => {
  test.each([
    ["its own", "LLM_CALL", { workload: "default/a" }, true],
    ["another's", "LLM_CALL", { workload: "default/b" }, false],
    ["the chain's", "CHAIN.GAP", { workload: "default/a" }, false],
    ["a count in which it is", REFUSALS_LEFT_OUT, { callers: { "default/a": 3 } }, true],
    ["a count in which it is not", REFUSALS_LEFT_OUT, { callers: { "default/ab": 3 } }, false],
    ["a count without callers", REFUSALS_LEFT_OUT, { callers: null }, false],
    ["a count that names it elsewhere", REFUSALS_LEFT_OUT, { codes: { "default/a": 3 } }, false],
    ["a call that only looks like a count", "LLM_CALL", { callers: { "default/a": 3 } }, false],
  ] as const)("%s", (_name, type, fields, expected) => {
    expect(shows("default/a", type, fields)).toBe(expected);
  });

  test.each([
    ["ext:ci", "ext:team/ci", true],
    ["ext:ci", "ext:team/aci", false],
    ["ext:ci", "default/ci", false],
    ["ext:team/ci", "ext:team/ci", true],
    ["ext:other/ci", "ext:team/ci", false],
  ])("of the access key %s in a count of %s: %s", (workload, caller, expected) => {
    expect(shows(workload, REFUSALS_LEFT_OUT, { callers: { [caller]: 1 } })).toBe(expected);
  });
});
