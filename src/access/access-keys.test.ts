import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { isAccessKey, newAccessKey, unwrapAccessKey, wrapAccessKey } from "./access-keys.ts";

const random = (seed: number): Uint8Array => createHash("sha256").update(String(seed)).digest();
const KEY = newAccessKey(random(1));

test("256 bits in base 62 behind the prefix", () => {
  expect(KEY).toMatch(/^svc_[0-9A-Za-z]{43}$/);
  expect(newAccessKey(new Uint8Array(32))).toBe(`svc_${"0".repeat(43)}`);
  expect(newAccessKey(new Uint8Array(32).fill(255))).toMatch(/^svc_[0-9A-Za-z]{43}$/);
  expect(new Set(Array.from({ length: 1_000 }, (_, seed) => newAccessKey(random(seed)))).size).toBe(
    1_000,
  );
  expect(() => newAccessKey(new Uint8Array(31))).toThrow(/32 random bytes/);
});

test("the wrapped form is the same key", () => {
  expect(wrapAccessKey(KEY)).toBe(`sk-ant-api03-${KEY}-AA`);
  expect(unwrapAccessKey(wrapAccessKey(KEY))).toBe(KEY);
  expect(unwrapAccessKey(KEY)).toBe(KEY);
});

test.each([
  ["wrapped twice", wrapAccessKey(wrapAccessKey(KEY))],
  ["a vendor's own key", "sk-ant-api03-abcdef-AA"],
  ["without its end", `sk-ant-api03-${KEY}`],
  ["without its start", `${KEY}-AA`],
  ["in another case", `SK-ANT-api03-${KEY}-AA`],
  ["with more around it", ` sk-ant-api03-${KEY}-AA`],
  ["a workload token", `sk-ant-api03-svcw_${"a".repeat(43)}-AA`],
])("left as it is: %s", (_name, text) => {
  expect(unwrapAccessKey(text)).toBe(text);
});

test.each([
  "",
  "svc_",
  KEY.slice(0, -1),
  `${KEY}a`,
  `${KEY}\n`,
  `svcw_${KEY.slice(4)}`,
  KEY.replace(/.$/, "-"),
])("not of the form: %j", (text) => {
  expect(isAccessKey(text)).toBe(false);
});
