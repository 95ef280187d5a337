import { expect, test } from "vitest";
import { BadRequestError } from "../dialects/dialect.ts";
import { refuse, type Refusal } from "../../access/refusal.ts";
import { settled } from "../../platform/testing.ts";
import { type Driver, Pipeline } from "./pipeline.ts";
import { BODY_STAGES, HEADER_STAGES } from "./stages.ts";

interface Told<Out> extends Driver<object, Out> {
  readonly events: unknown[];
}

function driver<Out>(): Told<Out> {
  const events: unknown[] = [];
  return {
    events,
    when: (promise, callback) => void tell(promise, callback, events),
    done: (state) => events.push(["done", state]),
    refused: (refusal: Refusal, state) => events.push(["refused", refusal.error.code, state]),
  };
}

async function tell<T>(
  promise: Promise<T>,
  callback: (value: T) => void,
  events: unknown[],
): Promise<void> {
  try {
    callback(await promise);
  } catch (error) {
    events.push(["defect", String(error)]);
  }
}

test("each stage reads what the ones before it added", () => {
  const told = driver();
  Pipeline.of<number, { a: number }>()
    .stage("b", ({ a }, context) => ({ b: a + context }))
    .stage("c", ({ a, b }) => ({ c: a + b }))
    .run({ a: 1 }, 10, told);
  expect(told.events).toEqual([["done", { a: 1, b: 11, c: 12 }]]);
});

test("the input stays as it was", () => {
  const input = { a: 1 };
  Pipeline.of<number, { a: number }>()
    .stage("b", () => ({ b: 2 }))
    .run(input, 0, driver());
  expect(input).toEqual({ a: 1 });
});

test("a refusal ends it, with what was known by then", () => {
  const told = driver();
  Pipeline.of<number, { a: number }>()
    .stage("b", () => ({ b: 2 }))
    .stage("no", () => refuse("not_found", "no"))
    .stage("never", () => {
      throw new Error("not reached");
    })
    .run({ a: 1 }, 0, told);
  expect(told.events).toEqual([["refused", "not_found", { a: 1, b: 2 }]]);
});

test("a malformed request is a refusal, at once or later", async () => {
  for (const run of [
    () => {
      throw new BadRequestError("bad", "x");
    },
    async () => Promise.reject(new BadRequestError("bad", "x")),
  ]) {
    const told = driver();
    Pipeline.of<number, object>().stage("bad", run).run({}, 0, told);
    await settled();
    expect(told.events).toEqual([["refused", "invalid_request", {}]]);
  }
});

test("an asynchronous stage is waited for; its refusal counts, and its error is a defect", async () => {
  const told = driver();
  const base = Pipeline.of<number, { a: number }>().stage("b", async () => ({ b: 2 }));
  base.stage("c", ({ b }) => ({ c: b })).run({ a: 1 }, 0, told);
  expect(told.events).toEqual([]);
  await settled();
  base.stage("no", async () => refuse("not_found", "no")).run({ a: 1 }, 0, told);
  await settled();
  base.stage("bug", async () => Promise.reject(new RangeError("bug"))).run({ a: 1 }, 0, told);
  await settled();
  expect(told.events).toEqual([
    ["done", { a: 1, b: 2, c: 2 }],
    ["refused", "not_found", { a: 1, b: 2 }],
    ["defect", "RangeError: bug"],
  ]);
});

test("another error is thrown: the request's guard has it", () => {
  const bug = Pipeline.of<number, object>().stage("bug", () => {
    throw new RangeError("bug");
  });
  expect(() => bug.run({}, 0, driver())).toThrow(RangeError);
});

test("the stages of a request, in order", () => {
  expect(HEADER_STAGES.names).toEqual(["identify", "share", "enter"]);
  expect(BODY_STAGES.names).toEqual([
    "read",
    "authorize",
    "inspect",
    "guard",
    "size",
    "reserve",
    "prepare",
  ]);
});
