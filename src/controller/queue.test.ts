import { expect, test } from "vitest";
import { ApiError } from "../kubernetes/connection.ts";
import { FakeClock, settled } from "../platform/testing.ts";
import { WorkQueue } from "./queue.ts";

function queueOf(work: (key: string) => Promise<void>, parallel = 2) {
  const clock = new FakeClock();
  const failures: [string, number][] = [];
  const queue = new WorkQueue({
    work,
    parallel,
    clock,
    random: () => 0.5,
    onFailure: (key, _error, retryMs) => failures.push([key, retryMs]),
  });
  return { clock, failures, queue };
}

test("works on nothing before it is started, and then on each key once", async () => {
  const done: string[] = [];
  const { queue } = queueOf(async (key) => void done.push(key));
  for (const key of ["a", "b", "a"]) queue.add(key);
  await settled();
  expect(done).toEqual([]);
  expect(queue.depth).toBe(2);
  queue.start();
  await settled();
  expect(done).toEqual(["a", "b"]);
});

test("never works twice at once on a key, and again if it became due meanwhile", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let begun = 0;
  const { queue } = queueOf(async () => gates[begun++]?.promise);
  queue.start();
  queue.add("a");
  await settled();
  queue.add("a");
  queue.add("a");
  await settled();
  expect(begun).toBe(1);
  gates[0]?.resolve();
  await settled();
  expect(begun).toBe(2);
  gates[1]?.resolve();
  await settled();
  expect(begun).toBe(2);
});

test("a key that is always due keeps no other waiting", async () => {
  const order: string[] = [];
  const { queue } = queueOf(async (key) => {
    order.push(key);
    if (key === "busy" && order.length < 10) queue.add("busy");
    await settled();
  }, 1);
  queue.start();
  for (const key of ["busy", "a", "b"]) queue.add(key);
  for (let i = 0; i < 20; i += 1) await settled();
  expect(order.indexOf("b")).toBeLessThanOrEqual(3);
});

test("retries a failed key after a delay that doubles, and forgets failures on success", async () => {
  let fails = 3;
  const { clock, failures, queue } = queueOf(async () => {
    if (fails-- > 0) throw new Error("no");
  });
  queue.start();
  queue.add("a");
  await settled();
  await clock.advanceAndSettle(200);
  await clock.advanceAndSettle(400);
  expect(failures).toEqual([
    ["a", 200],
    ["a", 400],
    ["a", 800],
  ]);
  await clock.advanceAndSettle(800);
  fails = 1;
  queue.add("a");
  await settled();
  expect(failures.at(-1)).toEqual(["a", 200]);
});

test("waits at least as long as the server asks", async () => {
  const { clock, failures, queue } = queueOf(async () => {
    throw new ApiError(429, "TooManyRequests", "slow down", 5_000);
  });
  queue.start();
  queue.add("a");
  await settled();
  expect(failures).toEqual([["a", 5_000]]);
  expect(clock.pending).toEqual([5_000]);
});

test("a change ends the delay of a failed key", async () => {
  let runs = 0;
  const { queue } = queueOf(async () => {
    runs += 1;
    if (runs === 1) throw new Error("no");
  });
  queue.start();
  queue.add("a");
  await settled();
  queue.add("a");
  await settled();
  expect(runs).toBe(2);
  expect(queue.depth).toBe(0);
});

test("stop waits for the work under way, and begins no other", async () => {
  const gate = Promise.withResolvers<void>();
  const done: string[] = [];
  const { queue } = queueOf(async (key) => {
    await gate.promise;
    done.push(key);
  }, 1);
  queue.start();
  queue.add("a");
  queue.add("b");
  const stopped = queue.stop().then(() => done.push("stopped"));
  await settled();
  expect(done).toEqual([]);
  gate.resolve();
  await stopped;
  expect(done).toEqual(["a", "stopped"]);
});
