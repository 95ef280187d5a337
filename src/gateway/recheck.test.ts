import { expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import { Recheck } from "./recheck.ts";

const DAY_MS = 86_400_000;

function create() {
  const clock = new FakeClock();
  const runs: number[] = [];
  const start = clock.now();
  const recheck = new Recheck(clock, () => runs.push(clock.now() - start));
  return { clock, recheck, runs, start };
}

test("the task runs at its time, once", () => {
  const { clock, recheck, runs, start } = create();
  recheck.set(start + 5_000);
  clock.advance(4_999);
  expect(runs).toEqual([]);
  clock.advance(100_000);
  expect(runs).toEqual([5_000]);
});

test("a new time replaces the old one", () => {
  const { clock, recheck, runs, start } = create();
  recheck.set(start + 5_000);
  recheck.set(start + 7_000);
  clock.advance(6_000);
  recheck.set(undefined);
  clock.advance(100_000);
  expect(runs).toEqual([]);
});

test("a time further away than a timer can wait is waited for", () => {
  const { clock, recheck, runs, start } = create();
  recheck.set(start + 100 * DAY_MS);
  clock.advance(99 * DAY_MS);
  expect(runs).toEqual([]);
  clock.advance(DAY_MS);
  expect(runs).toEqual([100 * DAY_MS]);
});

test("a time of day that was set back is waited for again", () => {
  const { clock, recheck, runs, start } = create();
  recheck.set(start + 5_000);
  clock.step(-60_000);
  clock.advance(5_000);
  expect(runs).toEqual([]);
  clock.advance(60_000);
  expect(runs).toEqual([5_000]);
});

test("a time that is over is now", () => {
  const { clock, recheck, runs, start } = create();
  recheck.set(start - 1);
  clock.advance(0);
  expect(runs).toEqual([0]);
});
