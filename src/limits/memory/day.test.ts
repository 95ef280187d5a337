import { expect, test } from "vitest";
import { DAY_MS, msToNextDay, utcDay } from "./day.ts";

const MIDNIGHT = Date.UTC(2026, 1, 28);

test.each([
  [MIDNIGHT - 1, "2026-02-27"],
  [MIDNIGHT, "2026-02-28"],
  [MIDNIGHT + DAY_MS - 1, "2026-02-28"],
  [MIDNIGHT + DAY_MS, "2026-03-01"],
  // Asked again, after another day.
  [MIDNIGHT, "2026-02-28"],
  [-1, "1969-12-31"],
])("%i is in the UTC day %s", (at, day) => {
  expect(utcDay(at)).toBe(day);
});

test.each([
  [MIDNIGHT, DAY_MS],
  [MIDNIGHT + 1, DAY_MS - 1],
  [MIDNIGHT - 1, 1],
  [0, DAY_MS],
  [-1, 1],
  [-DAY_MS + 1, DAY_MS - 1],
])("from %i the next day is %i ms away", (now, ms) => {
  expect(msToNextDay(now)).toBe(ms);
});
