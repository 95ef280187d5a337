import { expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import { Breaker } from "./breaker.ts";

function openBreaker(): { readonly clock: FakeClock; readonly breaker: Breaker } {
  const clock = new FakeClock();
  const breaker = new Breaker(clock);
  for (let failure = 0; failure < 3; failure += 1) breaker.failed();
  return { clock, breaker };
}

test("three failures in a row open it", () => {
  const breaker = new Breaker(new FakeClock());
  breaker.failed();
  breaker.failed();
  expect(breaker.enter()).toBe("closed");
  breaker.succeeded();
  breaker.failed();
  breaker.failed();
  expect(breaker.isOpen).toBe(false);
  expect(breaker.enter()).toBe("closed");
  breaker.failed();
  expect(breaker.isOpen).toBe(true);
  expect(breaker.enter()).toBe("open");
});

test("after a second one call tries it, and a success closes it", () => {
  const { clock, breaker } = openBreaker();
  clock.advance(999);
  expect(breaker.enter()).toBe("open");
  clock.advance(1);
  expect([breaker.enter(), breaker.enter(), breaker.enter()]).toEqual(["trial", "open", "open"]);
  expect(breaker.isOpen).toBe(true);
  breaker.succeeded();
  expect(breaker.isOpen).toBe(false);
  expect([breaker.enter(), breaker.enter()]).toEqual(["closed", "closed"]);
  // It needs three failures again.
  breaker.failed();
  breaker.failed();
  expect(breaker.enter()).toBe("closed");
});

test("the pause doubles with each trial that fails, up to 30 seconds, and begins anew", () => {
  const { clock, breaker } = openBreaker();
  const pauses: number[] = [];
  for (let trial = 0; trial < 7; trial += 1) {
    let pause = 0;
    while (breaker.enter() !== "trial") {
      clock.advance(500);
      pause += 500;
    }
    pauses.push(pause);
    breaker.failed();
  }
  expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  breaker.succeeded();
  for (let failure = 0; failure < 3; failure += 1) breaker.failed();
  clock.advance(1_000);
  expect(breaker.enter()).toBe("trial");
});

test("requests that were under way when it opened prolong nothing", () => {
  const { clock, breaker } = openBreaker();
  clock.advance(900);
  for (let late = 0; late < 20; late += 1) breaker.failed();
  clock.advance(100);
  expect(breaker.enter()).toBe("trial");
  breaker.failed();
  for (let late = 0; late < 20; late += 1) breaker.failed();
  clock.advance(2_000);
  expect(breaker.enter()).toBe("trial");
});

test("a request that was under way when it opened closes it if it succeeds", () => {
  const { breaker } = openBreaker();
  breaker.succeeded();
  expect(breaker.enter()).toBe("closed");
});

test("after a trial that never ends, the next one begins after the longest pause", () => {
  const { clock, breaker } = openBreaker();
  clock.advance(1_000);
  expect(breaker.enter()).toBe("trial");
  clock.advance(29_999);
  expect(breaker.enter()).toBe("open");
  clock.advance(1);
  expect(breaker.enter()).toBe("trial");
});

test("a clock that is set back changes nothing", () => {
  const { clock, breaker } = openBreaker();
  clock.step(-3_600_000);
  clock.advance(1_000);
  expect(breaker.enter()).toBe("trial");
});
