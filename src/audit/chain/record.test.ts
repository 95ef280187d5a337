import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { describe, expect, test } from "vitest";
import type { AuditValue } from "../event.ts";
import { encodeFields, GENESIS, MAX_FIELDS, parseRecord, sealRecord } from "./record.ts";

const header = {
  chain: "gw",
  seq: 7,
  time: "2026-01-31T12:00:00.000Z",
  type: "LLM_CALL",
  prev: GENESIS,
};

describe("sealRecord", () => {
  test("is the canonical JSON of the record, under the hash of the record without its hash", () => {
    const fields = encodeFields({
      z: 1,
      a: ['é\u2028"', null, true, 1e21, -0],
      "10": { b: undefined, "€": 0.1 },
      "9": "",
    });
    const { line, hash } = sealRecord(header, fields);
    const { hash: own, ...rest } = JSON.parse(line) as { hash: string };
    expect(own).toBe(hash);
    expect(canonicalize({ ...rest, hash })).toBe(line);
    expect(
      createHash("sha256")
        .update(canonicalize(rest) as string)
        .digest("hex"),
    ).toBe(hash);
    expect(parseRecord(line)).toMatchObject({ kind: "record", record: { seq: 7 } });
  });
});

describe("encodeFields", () => {
  test.each<[string, Record<string, AuditValue>]>([
    ["in order", { a: 1, b: { c: "x", d: [1, { e: null, f: true }] }, z: 'é\u2028"\\' }],
    ["out of order", { b: 1, a: 2 }],
    ["out of order below", { a: { c: 1, b: 2 } }],
    ["out of order in a list", { a: [{ c: 1, b: 2 }] }],
    ["with names that are numbers, which JavaScript puts first", { "9": 1, "10": 2, "": 0 }],
    [
      "with names beyond the basic plane, which sort by code units",
      { "\u{1F600}": 1, "\uFB33": 2 },
    ],
    ["with a name whose order depends on the locale", { Z: 1, a: 2, é: 3 }],
    ["with numbers that are written in their own ways", { a: 1e21, b: 1e-7, c: -0, d: 0.1 + 0.2 }],
    ["with what looks like an escaped surrogate", { a: "\\ud800" }],
  ])("is canonical for fields %s", (_name, fields) => {
    expect(encodeFields(fields)).toBe(canonicalize(fields));
  });

  test("leaves out what is undefined", () => {
    expect(encodeFields({ b: undefined, a: { c: undefined } })).toBe('{"a":{}}');
  });

  test("keeps the rest of what JSON cannot say", () => {
    const cycle: { [key: string]: never } = {};
    (cycle as { [key: string]: unknown })["self"] = cycle;
    expect(encodeFields({ a: Number.NaN, b: "\uD800x", c: 1 })).toBe(
      '{"a":"NaN","b":"\uFFFDx","c":1}',
    );
    expect(encodeFields({ cycle, n: 1 })).toContain('"n":1');
    expect(encodeFields({ big: 1n as never })).toBe('{"big":"1"}');
  });

  test.each<[string, (inner: AuditValue) => AuditValue]>([
    ["objects", (inner) => ({ a: inner })],
    ["lists", (inner) => [inner]],
  ])("keeps 32 levels of %s that JSON cannot say, and no more", (_name, nest) => {
    const nested = (levels: number): AuditValue =>
      levels === 0 ? { bad: Number.NaN } : nest(nested(levels - 1));
    const fields = (levels: number): string => encodeFields({ a: nested(levels) });
    expect(fields(30)).toContain('{"bad":"NaN"}');
    expect(fields(31)).not.toContain("bad");
    expect(fields(31)).toContain('"[too deep]"');
    expect(fields(40)).toBe(fields(31));
  });

  test("cuts down what is too large, and says whose it was", () => {
    const text = encodeFields({ workload: "default/a", payload: "x".repeat(MAX_FIELDS) });
    expect(text.length).toBeLessThan(300);
    expect(JSON.parse(text)).toMatchObject({
      workload: "default/a",
      oversize: { characters: MAX_FIELDS + 37 },
    });
  });
});

describe("parseRecord", () => {
  const { line, hash } = sealRecord(header, '{"a":1,"b":"x"}');
  const bad: readonly (readonly [string, string, string])[] = [
    ["edited", line.replace('"a":1', '"a":2'), "does not match its hash"],
    ["with another time", line.replace("12:00", "13:00"), "does not match its hash"],
    ["with another hash", line.replace(hash, GENESIS), "does not match its hash"],
    ["spaced", line.replace('"a":1', '"a": 1'), "not canonical"],
    ["with a number written otherwise", line.replace('"a":1', '"a":1.0'), "not canonical"],
    ["with an escape", line.replace('"x"', '"\\u0078"'), "not canonical"],
    ["in another order", line.replace('"a":1,"b":"x"', '"b":"x","a":1'), "not canonical"],
    ["with a member twice", line.replace('"a":1', '"a":0,"a":1'), "not canonical"],
    ["with one more member", line.replace('{"chain"', '{"aaa":1,"chain"'), "not canonical"],
    ["with something behind", `${line} `, "not canonical"],
    ["of another version", line.replace('"v":1', '"v":2'), "not a record"],
    ["that is no object", "[]", "not a record"],
    ["that is null", "null", "not a record"],
    ["without a hash", line.replace(`"hash":"${hash}",`, ""), "not a record"],
    ["with half a surrogate pair", sealRecord(header, '{"a":"\\ud800"}').line, "not Unicode"],
    ["cut", line.slice(0, -1), "not JSON"],
    ["empty", "", "not JSON"],
  ];
  test.each(bad)("refuses a line %s", (_name, text, message) => {
    expect(text).not.toBe(line);
    expect(parseRecord(text)).toMatchObject({
      kind: "bad",
      message: expect.stringContaining(message),
    });
  });
});
