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
