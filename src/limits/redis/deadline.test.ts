import { expect, test, vi } from "vitest";
import { Deadline } from "./deadline.ts";
import { FakeClock } from "../../platform/testing.ts";
import { NOON, pass, rounds } from "../testing.ts";

const MS = 40;

function make(): {
  readonly clock: FakeClock;
  readonly late: () => void;
  readonly deadline: Deadline<string>;
} {
  const clock = new FakeClock(NOON);
  const late = vi.fn<() => void>();
  return { clock, late, deadline: new Deadline(clock, MS, late) };
}

test("says so when the oldest has waited too long, and not before", async () => {
  const { clock, late, deadline } = make();
  deadline.add("first");
  await pass(clock, 30);
  deadline.add("second");
  expect(deadline.done("first")).toBe(true);
  await pass(clock, 30);
  expect(late).not.toHaveBeenCalled();
  await pass(clock, 10);
  expect(late).toHaveBeenCalledOnce();
});

test("what is added again waits since the first time", async () => {
  const { clock, late, deadline } = make();
  deadline.add("it");
  await pass(clock, 30);
  deadline.add("it");
  await pass(clock, 10);
  expect(late).toHaveBeenCalledOnce();
});

test("an answer that is in the socket when the time is over is in time", async () => {
  const { clock, late, deadline } = make();
  deadline.add("it");
  await pass(clock, 30);
  // The timer runs first, and the sockets are read after it.
  clock.advance(10);
  setImmediate(() => deadline.done("it"));
  await rounds();
  expect(late).not.toHaveBeenCalled();
});

test("time in which we did not run does not count", async () => {
  const { clock, late, deadline } = make();
  deadline.add("it");
  await pass(clock, 60_000, 60_000);
  expect(late).not.toHaveBeenCalled();
  await pass(clock, 20);
  expect(late).not.toHaveBeenCalled();
  await pass(clock, 10);
  expect(late).toHaveBeenCalledOnce();
});

test("what is waited for after all was taken away is not late for it", async () => {
  const { clock, late, deadline } = make();
  deadline.add("first");
  await pass(clock, 30);
  clock.advance(10);
  expect(deadline.takeAll()).toEqual(["first"]);
  deadline.add("second");
  await rounds();
  expect(late).not.toHaveBeenCalled();
  await pass(clock, MS);
  expect(late).toHaveBeenCalledOnce();
});

test("what is added between two checks has its whole time", async () => {
  const { clock, late, deadline } = make();
  deadline.add("first");
  clock.advance(5);
  deadline.add("second");
  deadline.done("first");
  await pass(clock, 5, 5);
  await pass(clock, 30);
  expect(late).not.toHaveBeenCalled();
  await pass(clock, 10);
  expect(late).toHaveBeenCalledOnce();
});

test("nothing is checked while nothing is waited for", async () => {
  const { clock, late, deadline } = make();
  expect(deadline.takeAll()).toEqual([]);
  deadline.add("it");
  expect(deadline.done("it")).toBe(true);
  expect(deadline.done("it")).toBe(false);
  await pass(clock, 10);
  expect(clock.pending).toEqual([]);
  deadline.add("one");
  deadline.add("two");
  expect(deadline.takeAll()).toEqual(["one", "two"]);
  expect(deadline.takeAll()).toEqual([]);
  expect(clock.pending).toEqual([]);
  expect(late).not.toHaveBeenCalled();
});
