import { expect, test } from "vitest";
import { compile } from "../compile/compile.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import { resourceId } from "../resources/kinds.ts";
import { keyOf } from "../resources/metadata.ts";
import { planAgent, type Surroundings } from "./plan.ts";
import { Plans } from "./plans.ts";
import { loadManifests, surroundingsOf, testConfig } from "./testing.ts";

interface Sample {
  readonly allow: string;
  readonly secretRef: string;
  readonly keys: string;
  readonly providers: string;
  readonly enforcement: string;
  readonly label: string;
}

const BASE: Sample = {
  allow: "pulls:read",
  secretRef: "first",
  keys: "{ token: YQ== }",
  providers: "[github]",
  enforcement: "enforce",
  label: "one",
};

/** Agents `writer`, which uses everything, and `other`, which uses nothing. */
function textOf(sample: Sample): string {
  const { allow, secretRef, keys, providers, enforcement, label } = sample;
  return `
apiVersion: svc.io/v1
kind: Agent
metadata: { name: writer, labels: { label: ${label} } }
spec: { image: "a:1", providers: ${providers}, guards: [{ binding: strict }] }
---
apiVersion: svc.io/v1
kind: Agent
metadata: { name: other }
spec: { image: "a:1" }
---
apiVersion: svc.io/v1
kind: Provider
metadata: { name: github }
spec:
  type: github
  auth: { type: token, secretRef: ${secretRef} }
  policy: { allow: ["${allow}"] }
---
apiVersion: svc.io/v1
kind: GuardBinding
metadata: { name: strict }
spec: { classifier: { type: stub }, enforcement: ${enforcement} }
---
apiVersion: v1
kind: Secret
metadata: { name: first }
data: ${keys}
`;
}

/** Loads resources as a source does: unchanged ones of an earlier load are the same values. */
function loader() {
  const known = new Map<string, { readonly version: string }>();
  return (sample: Sample) => {
    const { load, options } = loadManifests(textOf(sample));
    const maps = Object.values(load.resources) as unknown as Map<string, { version: string }>[];
    for (const map of maps)
      for (const [key, resource] of map) {
        const id = `${(resource as unknown as { kind: string }).kind}/${key}`;
        const same = known.get(id);
        if (same?.version === resource.version) map.set(key, same);
        else known.set(id, resource);
      }
    return compile(load, options);
  };
}

function update(
  plans: Plans,
  compiled: ReturnType<ReturnType<typeof loader>>,
  around: Surroundings = surroundingsOf(testConfig()),
) {
  const agents = new Map(
    [...compiled.resources.agents.values()].map((agent) => {
      const verdict = compiled.statuses.find((status) => resourceId(status) === resourceId(agent));
      if (verdict === undefined) throw new Error("no verdict");
      const metadata = { name: agent.name, namespace: agent.namespace, uid: around.uidOf(agent) };
      const object: KubeObject = { apiVersion: "svc.io/v1", kind: "Agent", metadata };
      return [keyOf(agent), { object, verdict }] as const;
    }),
  );
  const changed = [...plans.update(agents, compiled, around)];
  // Whatever is kept is what would be planned anew.
  for (const [key, agent] of compiled.resources.agents) {
    const { verdict } = agents.get(key) ?? {};
    if (verdict === undefined) throw new Error("no verdict");
    expect(plans.get(key)?.plan).toEqual(planAgent(agent, verdict, compiled, around));
  }
  return changed;
}

const around = surroundingsOf(testConfig());

test("nothing is planned anew when nothing has changed", () => {
  const plans = new Plans();
  const load = loader();
  expect(update(plans, load(BASE))).toEqual(["default/writer", "default/other"]);
  const plan = plans.get("default/writer");
  expect(update(plans, load(BASE))).toEqual([]);
  expect(plans.get("default/writer")).toBe(plan);
});

test.each<Partial<Sample>>([
  { allow: "issues:read" },
  { secretRef: "absent" },
  { keys: "{ token: Yg== }" },
  { keys: "{ other: YQ== }" },
  { providers: "[]" },
  { providers: "[github, absent]" },
  { enforcement: "audit" },
  { label: "two" },
])("an edit plans those anew that it concerns: %o", (change) => {
  const plans = new Plans();
  const load = loader();
  update(plans, load(BASE));
  expect(update(plans, load({ ...BASE, ...change }))).toEqual(["default/writer"]);
});

test.each<[string, Partial<Surroundings>]>([
  ["the gateway's address", { gateway: { address: "10.96.0.21" } }],
  ["the gateway's absence", { gateway: undefined }],
  ["the keys of tokens", { tokenOf: (_namespace, name) => `svcw_other_${name}` }],
  ["an object that was made anew", { uidOf: ({ name }) => `other-${name}` }],
])("%s concerns all", (_what, change) => {
  const plans = new Plans();
  const load = loader();
  update(plans, load(BASE));
  expect(update(plans, load(BASE), { ...around, ...change })).toHaveLength(2);
});

test("a digest concerns those that use the Secret", () => {
  const plans = new Plans();
  const load = loader();
  update(plans, load(BASE));
  const digestOf = (): string => "another";
  expect(update(plans, load(BASE), { ...around, digestOf })).toEqual(["default/writer"]);
});
