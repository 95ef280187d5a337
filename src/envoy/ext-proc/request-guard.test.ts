import { expect, test } from "vitest";
import { FakeClock, settled } from "../../platform/testing.ts";
import { RequestGuard } from "./request-guard.ts";

function create() {
  const clock = new FakeClock();
  const defects: unknown[] = [];
  const guard = new RequestGuard(clock, (error) => defects.push(error));
  /** Does the given milliseconds of work. */
  const work = (ms: number) => (): void => clock.advance(ms);
  const charged: number[] = [];
  const charge = (ms: number): void => void charged.push(ms);
  return { clock, guard, defects, work, charge, charged };
}

test("work from before the caller is known is charged to it, and all that follows", async () => {
  const { clock, guard, work, charge, charged } = create();
  guard.run(work(3));
  guard.run(work(4));
  guard.chargeTo(charge);
  guard.guard(work(5))();
  guard.when(Promise.resolve(), work(6));
  await settled();
  guard.after(100, work(7));
  clock.advance(100);
  expect(charged).toEqual([7, 5, 6, 7]);
});

test("a callback that another one calls is charged once", () => {
  const { guard, work, charge, charged } = create();
  guard.chargeTo(charge);
  guard.run(() => {
    work(1)();
    guard.run(work(2));
    work(3)();
  });
  expect(charged).toEqual([0, 6]);
});

test("work that ends in an error is charged too", () => {
  const { guard, work, charge, charged, defects } = create();
  guard.chargeTo(charge);
  guard.run(() => {
    work(9)();
    throw new Error("a defect");
  });
  guard.run(work(1));
  expect([charged, defects.length]).toEqual([[0, 9, 1], 1]);
});
