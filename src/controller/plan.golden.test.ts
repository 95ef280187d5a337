/**
 * Golden pairs `testdata/<name>.in.yaml -> <name>.out.yaml` of plans. `UPDATE_GOLDEN=1` writes the
 * outputs and deletes those without an input. In an input, `# config <JSON>` replaces settings, and
 * `# no gateway` takes the gateway's Service away.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { compile } from "../compile/compile.ts";
import { Goldens, goldenInputs } from "../platform/testing-goldens.ts";
import { resourceId } from "../resources/kinds.ts";
import { loadManifests, surroundingsOf, testConfig } from "./testing.ts";
import { planAgent } from "./plan.ts";

const DIR = fileURLToPath(new URL("./testdata/", import.meta.url));
const names = goldenInputs(DIR);
const goldens = new Goldens(DIR);

describe("plans", () => {
  test.each(names)("%s", (name) => {
    goldens.check(`${name}.out.yaml`, plansOf(readFileSync(`${DIR}${name}.in.yaml`, "utf8")));
  });

  afterAll(() => {
    expect(names.length).toBeGreaterThan(15);
    goldens.checkOrphans(".out.yaml");
  });
});

function plansOf(text: string): string {
  const [, settings = "{}"] = /^# config (.*)$/m.exec(text) ?? [];
  const { load, options } = loadManifests(text);
  const compiled = compile(load, options);
  const around = {
    ...surroundingsOf(testConfig(JSON.parse(settings) as object)),
    ...(/^# no gateway$/m.test(text) ? { gateway: undefined } : {}),
  };
  const plans = [...compiled.resources.agents.values()].map((agent) => {
    const verdict = compiled.statuses.find((status) => resourceId(status) === resourceId(agent));
    if (verdict === undefined) throw new Error(`no verdict on ${agent.name}`);
    const plan = planAgent(agent, verdict, compiled, around);
    return {
      agent: agent.name,
      variant: plan.variant,
      ...(plan.blocked === undefined ? {} : { blocked: plan.blocked }),
      ...(plan.run === undefined ? {} : { run: plan.run, ttlSeconds: plan.ttlSeconds ?? null }),
      hasWebhook: plan.hasWebhook,
      objects: plan.objects.map(({ object }) => object),
      workload: plan.workload?.object ?? null,
    };
  });
  return plans
    .map((plan) => stringify(plan, { lineWidth: 0, aliasDuplicateObjects: false }))
    .join("---\n");
}
