import { readFileSync } from "node:fs";
import path from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { DnsReport } from "./dns/report.ts";
import { BindingMetrics } from "./metrics.ts";

test("a version of the providers' file that is invalid is counted until one is in force", async () => {
  const registry = new Registry();
  const metrics = new BindingMetrics(registry);
  const values = async (): Promise<unknown[]> =>
    Promise.all(
      ["svc_binding_reload_ok", "svc_binding_reload_errors_total"].map(
        async (name) => (await registry.getSingleMetric(name)?.get())?.values[0]?.value,
      ),
    );
  expect(await values()).toEqual([1, 0]);
  metrics.reloaded(false);
  metrics.reloaded(false);
  expect(await values()).toEqual([0, 2]);
  metrics.reloaded(true);
  expect(await values()).toEqual([1, 2]);
});

const RESOLVED = {
  resolution: {
    kind: "resolved",
    actions: [{ action: "things:read", resources: [] }],
  },
} as const;
const VIOLATION = { code: "out_of_scope", rule: "scope", message: "No." } as const;

test.each<[string, object, object]>([
  [
    "a permit",
    { kind: "permitted", binding: { name: "one" }, violations: [], ...RESOLVED },
    { binding: "one", action: "things:read", decision: "allowed" },
  ],
  [
    "a permit in audit mode",
    { kind: "permitted", binding: { name: "one" }, violations: [VIOLATION], ...RESOLVED },
    { binding: "one", action: "things:read", decision: "audited" },
  ],
  [
    "a denial",
    { kind: "denied", binding: { name: "one" }, violations: [VIOLATION], ...RESOLVED },
    { binding: "one", action: "things:read", decision: "denied" },
  ],
  [
    "a denial for a host that is not bound",
    { kind: "denied", binding: undefined, violations: [], resolution: undefined },
    { binding: "none", action: "unknown", decision: "denied" },
  ],
])("a decision is counted and measured: %s", async (_name, verdict, labels) => {
  const registry = new Registry();
  const metrics = new BindingMetrics(registry);
  metrics.decided({ others: [], refusal: undefined, ...verdict } as never, 250);
  metrics.ended(verdict as never, 204, 1_500);
  const of = async (name: string): Promise<readonly unknown[]> =>
    (await registry.getSingleMetric(name)?.get())?.values ?? [];
  expect(await of("svc_binding_decisions_total")).toEqual([{ labels, value: 1 }]);
  const { binding, action } = labels as Record<string, string>;
  expect(await of("svc_binding_decision_seconds")).toContainEqual({
    metricName: "svc_binding_decision_seconds_sum",
    labels: { binding, action },
    value: 0.25,
  });
  expect(await of("svc_binding_call_seconds")).toContainEqual({
    metricName: "svc_binding_call_seconds_sum",
    labels: { binding, action, status: "204" },
    value: 1.5,
  });
});

test("changes that wait for a restart are a gauge", async () => {
  const registry = new Registry();
  const metrics = new BindingMetrics(registry);
  for (const changes of [3, 1]) metrics.waiting(changes);
  expect((await registry.getSingleMetric("svc_binding_changes_waiting")?.get())?.values).toEqual([
    { labels: {}, value: 1 },
  ]);
});

test("docs/metrics.md has the names, types, labels and words of the sidecar's metrics", async () => {
  const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/metrics.md"), "utf8");
  const [, section = ""] = /\n## The sidecar\n([^]*?)\n## /.exec(page) ?? [];
  const registry = new Registry();
  const log = new CapturedLog().log;
  const served = [
    new BindingMetrics(registry),
    new DnsReport({ registry, clock: new FakeClock(), log }),
  ];
  expect(served).toHaveLength(2);
  const rows = registry.getMetricsAsArray().map((metric) => {
    const { name, help, type, labelNames } = metric as unknown as {
      readonly name: string;
      readonly help: string;
      readonly type: string;
      readonly labelNames: readonly string[];
    };
    const labels = labelNames.map((label) => `\`${label}\``).join(", ");
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
  });
  expect(section.split("\n").filter((line) => line.startsWith("| `"))).toEqual(rows);
});
