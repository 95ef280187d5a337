import { expect, test } from "vitest";
import { retryAfterMs } from "./retry-after.ts";

const NOW = Date.parse("2026-11-21T10:00:00Z");

test.each<[string, Parameters<typeof retryAfterMs>[0], number | undefined]>([
  ["seconds", { retryAfter: "7" }, 7_000],
  ["fractions of a second, as some vendors send", { retryAfter: "0.25" }, 250],
  ["a date", { retryAfter: "Sat, 21 Nov 2026 10:00:09 GMT" }, 9_000],
  ["a date that has passed", { retryAfter: "Sat, 21 Nov 2026 09:00:00 GMT" }, 0],
  ["milliseconds win", { retryAfterMs: "350", retryAfter: "1" }, 350],
  ["milliseconds that cannot be read do not", { retryAfterMs: "soon", retryAfter: "1" }, 1_000],
  ["milliseconds with spaces and fractions", { retryAfterMs: " 0.5 " }, 0.5],
  ["milliseconds of nothing", { retryAfterMs: "0", retryAfter: "9" }, 0],
  ["milliseconds with a unit do not win", { retryAfterMs: "5ms", retryAfter: "1" }, 1_000],
  ["milliseconds below zero do not win", { retryAfterMs: "-5", retryAfter: "1" }, 1_000],
  ["seconds with spaces", { retryAfter: " 7 " }, 7_000],
  ["seconds that are no whole milliseconds", { retryAfter: "0.0001" }, 1],
  ["seconds of many digits", { retryAfter: "120.25" }, 120_250],
  ["this moment", { retryAfter: "Sat, 21 Nov 2026 10:00:00 GMT" }, 0],
  ["nothing", {}, undefined],
  ["an empty value", { retryAfter: " " }, undefined],
  ["a negative number is not a number of seconds, and no date", { retryAfter: "-5x" }, undefined],
  ["words", { retryAfter: "later" }, undefined],
])("%s", (_name, headers, expected) => {
  expect(retryAfterMs(headers, NOW)).toBe(expected);
});
