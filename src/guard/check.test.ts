import { describe, expect, test, vi } from "vitest";
import { FakeClock, settled } from "../platform/testing.ts";
import type { GuardPolicy } from "../policy/snapshot.ts";
import { check, flagOf, type GuardCheckResult } from "./check.ts";
import type { ClassifierVerdict } from "./classifier-client.ts";
import { guardPolicy, HUNG, judged, scores } from "./testing.ts";

/** One check of a few texts, whose requests a test answers. */
class Checking {
  readonly clock = new FakeClock();
  /** Texts that were asked about, in order. */
  readonly asked: string[] = [];
  readonly #answers = new Map<string, (verdict: ClassifierVerdict) => void>();
  result: GuardCheckResult | undefined;

  constructor(
    texts: readonly string[],
    {
      known = {},
      firstDecides = false,
      guard = guardPolicy(),
    }: {
      /** Verdicts that are there at once. */
      readonly known?: Readonly<Record<string, ClassifierVerdict>>;
      readonly firstDecides?: boolean;
      readonly guard?: GuardPolicy;
    } = {},
  ) {
    const pieces = texts.map((text, of) => ({ text, of, whole: text, start: 0 }));
    const ask = (_: unknown, text: string): ClassifierVerdict | Promise<ClassifierVerdict> => {
      this.asked.push(text);
      const { promise, resolve } = Promise.withResolvers<ClassifierVerdict>();
      this.#answers.set(text, resolve);
      return known[text] ?? promise;
    };
    const done = check({ classifiers: { ask }, clock: this.clock, guard, pieces, firstDecides });
    void done.then((result) => (this.result = result));
  }

  async answer(text: string, verdict: ClassifierVerdict): Promise<void> {
    this.#answers.get(text)?.(verdict);
    await settled();
  }

  get summary(): unknown {
    if (this.result === undefined) return undefined;
    const { flagged, count, unjudged } = this.result;
    return {
      flagged: flagged && `${flagged.piece.text} ${flagged.label} ${flagged.score}`,
      count,
      unjudged,
    };
  }
}

const BENIGN = judged(0);
const NOTHING = { flagged: undefined, count: 0, unjudged: undefined };

describe("which label is reached", () => {
  const thresholds = { injection: 0.5, jailbreak: 0.8 };
  test.each([
    [scores(0.5, 0), { label: "injection", score: 0.5 }],
    [scores(0.499_999, 0.799_999), undefined],
    [scores(0, 0.8), { label: "jailbreak", score: 0.8 }],
    [scores(0.6, 0.9), { label: "jailbreak", score: 0.9 }],
    [scores(0.9, 0.9), { label: "injection", score: 0.9 }],
    [scores(0.4, 0.9), { label: "jailbreak", score: 0.9 }],
    [scores(0.6, 0.7), { label: "injection", score: 0.6 }],
  ])("%j", (of, flag) => expect(flagOf(of, thresholds)).toEqual(flag));

  test("thresholds of 0 and 1", () => {
    expect(flagOf(scores(0, 0), { injection: 0, jailbreak: 1 })).toEqual({
      label: "injection",
      score: 0,
    });
    expect(flagOf(scores(0.99, 1), { injection: 1, jailbreak: 1 })).toEqual({
      label: "jailbreak",
      score: 1,
    });
  });
});

test("four texts at a time, the newest first", async () => {
  const texts = ["a", "b", "c", "d", "e", "f", "g"];
  const checking = new Checking(texts);
  expect(checking.asked).toEqual(["g", "f", "e", "d"]);
  await checking.answer("f", BENIGN);
  expect(checking.asked).toEqual(["g", "f", "e", "d", "c"]);
  for (const text of texts) await checking.answer(text, BENIGN);
  await checking.answer("b", BENIGN);
  await checking.answer("a", BENIGN);
  expect(checking.asked).toHaveLength(7);
  expect(checking.summary).toEqual(NOTHING);
  expect(checking.clock.pending).toEqual([]);
});

test("remembered verdicts do not wait for those that are asked about", async () => {
  const known = { a: BENIGN, b: judged(0.6), c: BENIGN };
  const checking = new Checking(["a", "b", "c"], { known });
  await settled();
  expect(checking.summary).toEqual({ flagged: "b injection 0.6", count: 1, unjudged: undefined });
});

test("nothing to judge is judged", async () => {
  const checking = new Checking([]);
  await settled();
  expect(checking.summary).toEqual(NOTHING);
});

test("of several the highest score, and their number", async () => {
  const known = { a: judged(0.6), b: judged(0, 0.9), c: judged(0.9), d: judged(0.2) };
  const checking = new Checking(["a", "b", "c", "d"], { known });
  await settled();
  expect(checking.summary).toEqual({ flagged: "c injection 0.9", count: 3, unjudged: undefined });
});

describe("when the first one decides", () => {
  test("nothing else is asked, and what is under way is not waited for", async () => {
    const checking = new Checking(["a", "b", "c", "d", "e", "f"], { firstDecides: true });
    await checking.answer("e", judged(0.7));
    expect(checking.asked).toEqual(["f", "e", "d", "c"]);
    expect(checking.summary).toEqual({ flagged: "e injection 0.7", count: 1, unjudged: undefined });
    await checking.answer("f", judged(1));
    expect(checking.summary).toMatchObject({ flagged: "e injection 0.7" });
    expect(checking.clock.pending).toEqual([]);
  });

  test("a remembered one saves all requests behind it", async () => {
    const checking = new Checking(["a", "b", "c"], { firstDecides: true, known: { c: judged(1) } });
    await settled();
    expect(checking.asked).toEqual(["c"]);
  });
});

describe("the guard's time", () => {
  test("what was judged by then counts, and the rest is not benign", async () => {
    const checking = new Checking(["a", "b", "c", "d", "e", "f"]);
    await checking.answer("f", judged(0.8));
    await checking.answer("e", BENIGN);
    await checking.clock.advanceAndSettle(999);
    expect(checking.summary).toBeUndefined();
    await checking.clock.advanceAndSettle(1);
    expect(checking.summary).toEqual({
      flagged: "f injection 0.8",
      count: 1,
      unjudged: { count: 4, failure: "timeout" },
    });
    await checking.answer("d", judged(1));
    expect(checking.asked).toEqual(["f", "e", "d", "c", "b", "a"]);
    expect(checking.summary).toMatchObject({ flagged: "f injection 0.8" });
  });

  test("nobody is asked about the rest afterwards", async () => {
    const checking = new Checking(["a", "b", "c", "d", "e", "f"]);
    await checking.clock.advanceAndSettle(1_000);
    await checking.answer("f", BENIGN);
    expect(checking.asked).toEqual(["f", "e", "d", "c"]);
    expect(checking.summary).toEqual({ ...NOTHING, unjudged: { count: 6, failure: "timeout" } });
  });
});

describe("without a verdict", () => {
  test("at once: nothing is waited for, and nothing is benign", async () => {
    const down: ClassifierVerdict = { kind: "unavailable", failure: "breaker_open" };
    const checking = new Checking(["a", "b"], { known: { a: down, b: down } });
    await settled();
    expect(checking.summary).toEqual({
      ...NOTHING,
      unjudged: { count: 2, failure: "breaker_open" },
    });
  });

  test("of some: the others decide, and the first failure is told", async () => {
    const checking = new Checking(["a", "b", "c"]);
    await checking.answer("b", { kind: "unavailable", failure: "refused" });
    await checking.answer("a", HUNG);
    await checking.answer("c", judged(0.9));
    expect(checking.summary).toEqual({
      flagged: "c injection 0.9",
      count: 1,
      unjudged: { count: 2, failure: "refused" },
    });
  });

  test("a decided check is not unavailable as well", async () => {
    const checking = new Checking(["a", "b"], { firstDecides: true });
    await checking.answer("a", HUNG);
    await checking.answer("b", judged(0.9));
    expect(checking.summary).toEqual({ flagged: "b injection 0.9", count: 1, unjudged: undefined });
  });

  test("of all, slowly: the check ends with the last one", async () => {
    const checking = new Checking(["a", "b"], { firstDecides: true });
    await checking.answer("a", HUNG);
    expect(checking.summary).toBeUndefined();
    await checking.answer("b", HUNG);
    expect(checking.summary).toEqual({ ...NOTHING, unjudged: { count: 2, failure: "timeout" } });
  });
});

test("100,000 remembered texts need no stack", async () => {
  const texts = Array.from({ length: 100_000 }, (_, index) => `${index}`);
  const known = Object.fromEntries(texts.map((text) => [text, BENIGN]));
  const checking = new Checking(texts, { known });
  await settled();
  expect(checking.summary).toEqual(NOTHING);
});

test("while remembered verdicts of a large body are looked up, others get their turn", async () => {
  const texts = Array.from({ length: 20 }, (_, index) => `text ${index}`);
  const known = Object.fromEntries(texts.map((text) => [text, BENIGN]));
  const clock = new FakeClock();
  let now = 0;
  vi.spyOn(clock, "monotonic").mockImplementation(() => (now += 5));
  const order: string[] = [];
  const done = check({
    classifiers: { ask: (_, text) => known[text] as ClassifierVerdict },
    clock,
    guard: guardPolicy(),
    pieces: texts.map((text, of) => ({ text, of, whole: text, start: 0 })),
    firstDecides: false,
  }).then(({ unjudged }) => order.push(unjudged === undefined ? "all judged" : "not all"));
  setImmediate(() => order.push("other"));
  await done;
  expect(order).toEqual(["other", "all judged"]);
});
