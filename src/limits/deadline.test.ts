import { expect, test, vi } from "vitest";
import { Deadline } from "./deadline.ts";
import { FakeClock } from "./testing.ts";

/** More than the rounds of the event loop that a deadline lets pass. */
async function rounds(): Promise<void> {
  for (let round = 0; round < 4; round++) await new Promise((resolve) => setImmediate(resolve));
}

test("says so when the oldest has waited too long, and not before", async () => {
  const clock = new FakeClock();
  const late = vi.fn<() => void>();
  const deadline = new Deadline(clock, 40, late);
  const first = { since: clock.monotonic() };
  deadline.add(first);
  clock.advance(30);
  deadline.add({ since: clock.monotonic() });
  expect(deadline.done(first)).toBe(true);
  clock.advance(39);
  await rounds();
  expect(late).not.toHaveBeenCalled();
  clock.advance(1);
  await rounds();
  expect(late).toHaveBeenCalledOnce();
});

test("an answer that was in the socket when our own loop was late is in time", async () => {
  const clock = new FakeClock();
  const late = vi.fn<() => void>();
  const deadline = new Deadline(clock, 40, late);
  const waiting = { since: clock.monotonic() };
  deadline.add(waiting);
  // The loop was held up for a second: the timer runs first, the sockets are read after.
  clock.advance(1_000);
  setImmediate(() => deadline.done(waiting));
  await rounds();
  expect(late).not.toHaveBeenCalled();
});

test("what is waited for after all was taken away is not late for it", async () => {
  const clock = new FakeClock();
  const late = vi.fn<() => void>();
  const deadline = new Deadline(clock, 40, late);
  deadline.add({ since: clock.monotonic() });
  clock.advance(40);
  expect(deadline.takeAll()).toHaveLength(1);
  deadline.add({ since: clock.monotonic() });
  await rounds();
  expect(late).not.toHaveBeenCalled();
  clock.advance(40);
  await rounds();
  expect(late).toHaveBeenCalledOnce();
});
