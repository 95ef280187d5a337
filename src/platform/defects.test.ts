import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { Defects } from "./defects.ts";
import { CapturedLog, FakeClock } from "./testing.ts";

function setUp(): {
  defects: Defects;
  captured: CapturedLog;
  clock: FakeClock;
  registry: Registry;
} {
  const registry = new Registry();
  const captured = new CapturedLog();
  const clock = new FakeClock();
  return {
    defects: new Defects({ log: captured.log, clock, registry }),
    captured,
    clock,
    registry,
  };
}

test("a defect is counted by its part and logged with its stack", async () => {
  const { defects, captured, registry } = setUp();
  defects.reporter("llm")(new RangeError("too deep"));
  defects.reporter("attempt")("not an Error");
  expect(captured.lines).toMatchObject([
    { part: "llm", error: expect.stringMatching(/^RangeError: too deep\n {4}at /) },
    { part: "attempt", error: "not an Error" },
  ]);
  const metrics = await registry.metrics();
  expect(metrics).toContain('svc_defects_total{part="llm"} 1');
  expect(metrics).toContain('svc_defects_total{part="attempt"} 1');
});

test("a flood of defects is counted in full and logged in part, a minute at a time", async () => {
  const { defects, captured, clock, registry } = setUp();
  const report = defects.reporter("llm");
  for (let n = 0; n < 500; n++) report(new Error("again"));
  expect(captured.lines).toHaveLength(60);
  expect(await registry.metrics()).toContain('svc_defects_total{part="llm"} 500');
  clock.advance(60_000);
  report(new Error("again"));
  expect(captured.lines).toHaveLength(61);
});

test("a client's text in a message does not make a log line long", () => {
  const { defects, captured } = setUp();
  defects.reporter("llm")(new Error("x".repeat(1_000_000)));
  expect(String(captured.lines[0]?.["error"])).toHaveLength(4_096);
});
