import { expect, test } from "vitest";
import { formatDuration, parseDuration } from "./duration.ts";

test.each([
  ["30s", 30_000],
  ["5m", 300_000],
  ["2h", 7_200_000],
  ["7d", 604_800_000],
  ["1h30m", 5_400_000],
  ["250ms", 250],
  ["1.5h", 5_400_000],
  ["0s", 0],
  ["3650d", 315_360_000_000],
])("%s is %i ms", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  "",
  "5",
  "s",
  "-5m",
  "+5m",
  "5 m",
  " 5m",
  "5m ",
  "5M",
  "5w",
  "5m5m",
  "1e3s",
  "0x10s",
  ".5h",
  "5.h",
  "3651d",
  "999999999999999d",
  "٥m",
  "5m\n",
])("no duration: %j", (text) => {
  expect(parseDuration(text)).toBeUndefined();
});

test.each([
  [-5, "0s"],
  [999, "0s"],
  [59_999, "59s"],
  [60_000, "1m"],
  [61_000, "1m1s"],
  [3_599_000, "59m"],
  [5_400_000, "1h30m"],
  [86_399_000, "23h"],
  [90_000_000, "1d1h"],
  [864_000_000, "10d"],
])("%i ms reads %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
