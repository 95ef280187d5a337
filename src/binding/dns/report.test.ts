import { Registry } from "prom-client";
import { beforeEach, describe, expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import type { DnsAnswer } from "./answer.ts";
import type { DnsQuery } from "./message.ts";
import { DnsReport } from "./report.ts";

let registry: Registry;
let clock: FakeClock;
let log: CapturedLog;
let report: DnsReport;

beforeEach(() => {
  registry = new Registry();
  clock = new FakeClock();
  log = new CapturedLog();
  report = new DnsReport({ registry, clock, log: log.log });
});

function answer(outcome: DnsAnswer["outcome"], type?: number, name = "a.example"): DnsAnswer {
  const query = type === undefined ? undefined : ({ name, type } as DnsQuery);
  return { outcome, query, reply: undefined };
}

async function counted(): Promise<readonly unknown[]> {
  const metric = await registry.getSingleMetric("svc_binding_dns_queries_total")?.get();
  return metric?.values ?? [];
}

test.each([
  [1, "A"],
  [28, "AAAA"],
  [64, "SVCB"],
  [65, "HTTPS"],
  [255, "ANY"],
  [16, "other"],
  [0, "other"],
  [undefined, "none"],
])("a query of type %s counts as %s", async (number, type) => {
  report.answered(answer("malformed", number));
  expect(await counted()).toEqual([{ labels: { type, outcome: "malformed" }, value: 1 }]);
});

test("a dropped query counts by itself, and gets no line", async () => {
  report.dropped();
  report.dropped();
  expect(await counted()).toEqual([{ labels: { type: "none", outcome: "dropped" }, value: 2 }]);
  expect(log.lines).toEqual([]);
});

describe("lines", () => {
  test.each(["bound", "listed"] as const)("there is none for a name that is %s", (outcome) => {
    report.answered(answer(outcome, 1));
    expect(log.lines).toEqual([]);
  });

  test.each([
    ["unknown", 1, { name: "a.example", type: "A", outcome: "unknown" }],
    ["unavailable", 28, { name: "a.example", type: "AAAA", outcome: "unavailable" }],
    ["refused", 16, { name: "a.example", type: 16, outcome: "refused" }],
    ["malformed", undefined, { outcome: "malformed" }],
  ] as const)("one that is %s", (outcome, type, fields) => {
    report.answered(answer(outcome, type));
    const [line] = log.lines;
    expect(line).toMatchObject({ level: 30, ...fields });
    const { level, time, pid, hostname, msg, ...rest } = line as Record<string, unknown>;
    expect(rest).toEqual(fields);
    expect([level, time, pid, hostname, msg]).not.toContain(undefined);
  });

  test("the first line after a flood names the number of the others, once", () => {
    for (let query = 0; query < 25; query++) report.answered(answer("unknown", 1));
    expect(log.lines).toHaveLength(20);
    expect(log.lines.some((line) => "omitted" in line)).toBe(false);
    clock.advance(2_000);
    report.answered(answer("unknown", 1));
    report.answered(answer("unknown", 1));
    expect(log.lines.slice(20).map((line) => line["omitted"])).toEqual([5, undefined]);
  });
});
