import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { CapturedLog, FakeClock, settled } from "../../platform/testing.ts";
import type { AppendOutcome, AuditEvent } from "../event.ts";
import { MAX_FIELDS } from "../chain/record.ts";
import { CallerBudgets } from "./refusal-budgets.ts";
import {
  REFUSAL_LIMITS,
  RefusalLog,
  type RefusalLogOptions,
  REFUSALS_LEFT_OUT,
} from "./refusals.ts";
import type { AuditSink, AuditState } from "../sink.ts";

class Sink implements AuditSink {
  readonly events: AuditEvent[] = [];
  refusing = false;
  state: AuditState = "ok";
  outcome: AppendOutcome = "committed";

  append(event: AuditEvent, done?: (outcome: AppendOutcome) => void): void {
    this.events.push(event);
    done?.(this.outcome);
  }

  get summaries(): AuditEvent["fields"][] {
    return this.events.filter(({ type }) => type === REFUSALS_LEFT_OUT).map(({ fields }) => fields);
  }

  get single(): number {
    return this.events.filter(({ type }) => type === "REFUSED").length;
  }
}

class Bench {
  readonly sink = new Sink();
  readonly clock = new FakeClock(Date.UTC(2026, 0, 31, 12));
  readonly captured = new CapturedLog();
  readonly registry = new Registry();
  readonly refusals: RefusalLog;

  constructor(more: Partial<RefusalLogOptions> = {}) {
    this.refusals = new RefusalLog({
      sink: this.sink,
      of: "REFUSED",
      clock: this.clock,
      log: this.captured.log,
      registry: this.registry,
      ...more,
    });
  }

  /** @returns the number of refusals that got a record of their own */
  refuse(
    times: number,
    caller: string | ((i: number) => string) = "default/a",
    code = "x",
  ): number {
    let single = 0;
    for (let i = 0; i < times; i += 1) {
      const who = typeof caller === "string" ? caller : caller(i);
      const event = (): AuditEvent => ({ type: "REFUSED", fields: { caller: who } });
      if (this.refusals.record({ caller: who, code, event })) single += 1;
    }
    return single;
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advanceAndSettle(ms);
  }
}

const { caller, total, summaryMs } = REFUSAL_LIMITS;

describe("how many get a record of their own", () => {
  test("of one caller a burst, then a sustained rate", async () => {
    const bench = new Bench();
    expect(bench.refuse(1_000)).toBe(caller.burst);
    await bench.pass(10_000);
    expect(bench.refuse(1_000)).toBe(10 * caller.perSecond);
    await bench.pass(3_600_000);
    expect(bench.refuse(1_000)).toBe(caller.burst);
  });

  test("one caller's flood does not take another's", () => {
    const bench = new Bench();
    bench.refuse(100_000, "anonymous");
    expect(bench.refuse(20, "default/b")).toBe(20);
  });

  test("of all together a burst, then a sustained rate, however many callers there are", async () => {
    const bench = new Bench();
    expect(bench.refuse(10_000, (i) => `default/${i % 500}`)).toBe(total.burst);
    await bench.pass(1_000);
    expect(bench.refuse(10_000, (i) => `default/${i % 500}`)).toBe(total.perSecond);
  });

  test("the clock that counts is the monotonic one", () => {
    const bench = new Bench();
    bench.refuse(caller.burst);
    bench.clock.step(3_600_000);
    expect(bench.refuse(10)).toBe(0);
    bench.clock.step(-7_200_000);
    expect(bench.refuse(10)).toBe(0);
  });

  test("the record is made only where it is kept", () => {
    const bench = new Bench();
    let made = 0;
    for (let i = 0; i < 1_000; i += 1)
      bench.refusals.record({
        caller: "a",
        code: "x",
        event: () => {
          made += 1;
          return { type: "REFUSED", fields: {} };
        },
      });
    expect(made).toBe(caller.burst);
  });

  test("a day of the worst that a stranger can do is bounded", async () => {
    const bench = new Bench();
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      bench.refuse(200, "anonymous");
      await bench.pass(60_000);
    }
    expect(bench.sink.single).toBeLessThanOrEqual(caller.burst + 86_400 * caller.perSecond);
    expect(bench.sink.summaries.length).toBeLessThanOrEqual(24 * 60);
  });
});

describe("callers that are tracked", () => {
  const rate = { perSecond: 1, burst: 10 };

  test("are bounded in number; a new one shares a budget with the other new ones", () => {
    const budgets = new CallerBudgets(rate, 3);
    const spend = (name: string, now: number): boolean => {
      const budget = budgets.of(name, now);
      if (!budget.has(now)) return false;
      budget.take();
      return true;
    };
    for (const name of ["a", "b", "c"]) spend(name, 0);
    let others = 0;
    for (let i = 0; i < 1_000; i += 1) if (spend(`other-${i}`, 1)) others += 1;
    expect(others).toBe(rate.burst);
    expect(budgets.size).toBe(3);
  });

  test("are forgotten when their budget is full again, never before: no second burst", () => {
    const budgets = new CallerBudgets(rate, 2);
    const a = budgets.of("a", 0);
    budgets.of("b", 1);
    budgets.of("c", 9_999);
    expect(budgets.of("a", 9_999)).toBe(a);
    // Only b has been idle long enough to refill its budget.
    budgets.of("c", 10_001);
    expect(budgets.of("a", 10_002)).toBe(a);
  });
});

describe("what is left out is told", () => {
  test("by caller, code and reason, with the time from the first to the last", async () => {
    const bench = new Bench();
    bench.refuse(caller.burst + 5, "default/a", "model_not_found");
    await bench.pass(500);
    bench.refuse(caller.burst + 2, "anonymous", "invalid_key");
    expect(bench.sink.summaries).toEqual([]);
    await bench.pass(summaryMs);
    expect(bench.sink.summaries).toEqual([
      {
        of: "REFUSED",
        count: 7,
        callers: { "default/a": 5, anonymous: 2 },
        codes: { model_not_found: 5, invalid_key: 2 },
        reasons: { rate: 7 },
        since: "2026-01-31T12:00:00.000Z",
        until: "2026-01-31T12:00:00.500Z",
      },
    ]);
    await bench.pass(10 * summaryMs);
    expect(bench.sink.summaries).toHaveLength(1);
    expect(bench.refusals.leftOut).toEqual({ rate: 7, space: 0, failure: 0 });
    expect(await bench.registry.metrics()).toContain(
      'svc_audit_refusals_left_out_total{reason="rate"} 7',
    );
  });

  test("in a record of bounded size, whoever they are; its numbers add up", async () => {
    const bench = new Bench();
    const name = (i: number): string => `${"n".repeat(253)}/${"a".repeat(240)}-${i}`;
    for (let i = 0; i < 3_000; i += 1) bench.refuse(1, name(i), `code-${i}`);
    await bench.pass(summaryMs);
    const [fields = {}] = bench.sink.summaries;
    expect(JSON.stringify(fields).length).toBeLessThan(MAX_FIELDS);
    const sum = (member: string): number =>
      Object.values(fields[member] as Record<string, number>).reduce((a, b) => a + b, 0);
    expect(fields["count"]).toBe(3_000 - total.burst);
    expect(sum("callers") + Number(fields["other_callers"])).toBe(fields["count"]);
    expect(sum("codes") + Number(fields["other_codes"])).toBe(fields["count"]);
    expect(sum("reasons")).toBe(fields["count"]);
  });

  test("a caller named as a member of every object is counted like any other", async () => {
    const bench = new Bench();
    bench.refuse(caller.burst + 1, "__proto__", "constructor");
    await bench.pass(summaryMs);
    const [fields = {}] = bench.sink.summaries;
    expect(Object.entries(fields["callers"] as object)).toEqual([["__proto__", 1]]);
    expect(Object.entries(fields["codes"] as object)).toEqual([["constructor", 1]]);
  });

  test("at an orderly end, at once, and nothing is left to come", async () => {
    const bench = new Bench();
    bench.refuse(caller.burst + 3);
    await bench.refusals.close();
    expect(bench.sink.summaries).toMatchObject([{ count: 3 }]);
    expect(bench.clock.pending).toEqual([]);
  });

  test("at an end without any, nothing", async () => {
    const bench = new Bench();
    bench.refuse(3);
    await bench.refusals.close();
    expect(bench.sink.summaries).toEqual([]);
    expect(bench.captured.lines).toEqual([]);
  });

  test("in the log, where the chain does not take it at the end", async () => {
    const bench = new Bench();
    bench.refuse(caller.burst + 3);
    bench.sink.outcome = "failed";
    await bench.refusals.close();
    expect(bench.captured.lines).toMatchObject([
      { count: 3, callers: { "default/a": 3 }, msg: "refusals that have no record of their own" },
    ]);
  });

  test("again, together with what came after, where the record was not kept", async () => {
    const bench = new Bench();
    bench.refuse(caller.burst + 3);
    bench.sink.outcome = "failed";
    await bench.pass(summaryMs);
    bench.sink.events.length = 0;
    bench.sink.outcome = "committed";
    expect(bench.refuse(caller.burst + 4)).toBe(caller.burst);
    await bench.pass(summaryMs);
    expect(bench.sink.summaries).toMatchObject([
      { count: 7, since: "2026-01-31T12:00:00.000Z", until: "2026-01-31T12:01:00.000Z" },
    ]);
  });

  test("when the end comes while a record of it is being written that is not kept", async () => {
    const bench = new Bench();
    bench.refuse(caller.burst + 3);
    let tell: ((outcome: AppendOutcome) => void) | undefined;
    bench.sink.append = (_event, done) => void (tell = done);
    bench.clock.advance(summaryMs);
    const closing = bench.refusals.close();
    tell?.("failed");
    await settled();
    tell?.("failed");
    await closing;
    expect(bench.captured.lines).toMatchObject([{ count: 3 }]);
  });

  test("in the log, where there is no chain", async () => {
    const bench = new Bench({ sink: undefined });
    expect(bench.refuse(caller.burst + 3)).toBe(caller.burst);
    await bench.pass(summaryMs);
    expect(bench.captured.lines).toMatchObject([{ count: 3 }]);
  });
});

describe("the counters", () => {
  test("are there before anything is left out, and cannot be changed from outside", async () => {
    const bench = new Bench();
    const text = await bench.registry.metrics();
    for (const reason of ["rate", "space", "failure"])
      expect(text).toContain(`svc_audit_refusals_left_out_total{reason="${reason}"} 0`);
    Object.assign(bench.refusals.leftOut, { rate: 9 });
    expect(bench.refusals.leftOut).toEqual({ rate: 0, space: 0, failure: 0 });
  });

  test("count what comes after the end too, for which nobody waits any more", async () => {
    const bench = new Bench();
    await bench.refusals.close();
    expect(bench.refuse(caller.burst + 2)).toBe(caller.burst);
    expect(bench.refusals.leftOut.rate).toBe(2);
    expect(bench.clock.pending).toEqual([]);
  });
});

test("limits of one's own replace the usual ones, each by itself", async () => {
  const bench = new Bench({ limits: { summaryMs: 1_000, caller: { perSecond: 1, burst: 2 } } });
  expect(bench.refuse(5)).toBe(2);
  expect(bench.refuse(1_000, (i) => `default/${i}`)).toBe(total.burst - 2);
  await bench.pass(999);
  expect(bench.sink.summaries).toEqual([]);
  await bench.pass(1);
  expect(bench.sink.summaries).toHaveLength(1);
});

test("who has used up its own takes nothing of what is for all, and the other way round", async () => {
  const limits = { caller: { perSecond: 1, burst: 4 }, total: { perSecond: 1, burst: 6 } };
  const bench = new Bench({ limits });
  expect(bench.refuse(100, "a")).toBe(4);
  expect(bench.refuse(100, "b")).toBe(2);
  await bench.pass(2_000);
  expect(bench.refuse(1, "c")).toBe(1);
  expect(bench.refuse(100, "b")).toBe(1);
});

describe("when space is short or the chain cannot be written", () => {
  test.each([
    ["low", "space"],
    ["full", "space"],
    ["failing", "failure"],
  ] as const)("%s: none gets a record of its own", async (state, reason) => {
    const bench = new Bench();
    bench.sink.state = state;
    expect(bench.refuse(5)).toBe(0);
    expect(bench.sink.events).toEqual([]);
    bench.sink.state = "ok";
    await bench.pass(summaryMs);
    expect(bench.sink.summaries).toMatchObject([{ count: 5, reasons: { [reason]: 5 } }]);
  });

  test("low: what was left out is told", async () => {
    const bench = new Bench();
    bench.sink.state = "low";
    bench.refuse(5);
    await bench.pass(summaryMs);
    expect(bench.sink.summaries).toMatchObject([{ count: 5 }]);
  });

  test.each(["full", "failing"] as const)("%s: it is told once that is over", async (state) => {
    const bench = new Bench();
    bench.sink.state = state;
    bench.refuse(5);
    await bench.pass(10 * summaryMs);
    bench.refuse(5);
    expect(bench.sink.events).toEqual([]);
    bench.sink.state = "ok";
    await bench.pass(summaryMs);
    await settled();
    expect(bench.sink.summaries).toMatchObject([{ count: 10 }]);
  });
});
