import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "./clock.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("calls once, after its time", () => {
  const callback = vi.fn<() => void>();
  systemClock.after(100, callback);
  vi.advanceTimersByTime(99);
  expect(callback).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1_000);
  expect(callback).toHaveBeenCalledOnce();
});

test("does not call what was cancelled, before or after", () => {
  const callback = vi.fn<() => void>();
  const cancel = systemClock.after(100, callback);
  cancel();
  vi.advanceTimersByTime(1_000);
  expect(callback).not.toHaveBeenCalled();
  cancel();
});

test("tells both times", () => {
  vi.setSystemTime(1_800_000_000_000);
  expect(systemClock.now()).toBe(1_800_000_000_000);
  const before = systemClock.monotonic();
  vi.advanceTimersByTime(50);
  expect(systemClock.monotonic() - before).toBe(50);
});
