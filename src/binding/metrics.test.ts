import { Registry } from "prom-client";
import { expect, test } from "vitest";
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
